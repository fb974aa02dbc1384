// The next token is taken on the GPU.
#include "fake_cuda/device_harness.h"
#include "runtime/decode/sampling_graph.h"

namespace redfuser::device_tests {
namespace {

class Sampling : public FakeGpu {};

TEST_F(Sampling, EveryStepHasAKernel) {
  for (const DType dtype : {DType::Float16, DType::BFloat16, DType::Float32, DType::Float64}) {
    for (const bool one_position : {false, true}) {
      for (const bool penalises : {false, true}) {
        for (const int64_t sorted : {-1, 0, 5, 32000}) {
          const runtime::SamplingForm form{dtype, one_position, penalises, sorted >= 0,
                                           std::max<int64_t>(sorted, 0)};
          Session session(compile(Model::parse(runtime::sampling_graph(form))), options);
          for (const std::string& note : session.notes()) {
            EXPECT_EQ(note.find("CPU"), std::string::npos) << note;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace redfuser::device_tests
