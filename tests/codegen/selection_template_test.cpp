// Selections by themselves: src/device/select with functors written by hand.
#include "codegen/core/device_text.h"
#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

constexpr std::string_view kHeaders[] = {"device/selection/selection.cuh",
                                         "device/selection/suppression.cuh"};

constexpr const char* kKernels = R"(
struct Positive {
  const float* x;
  __device__ bool operator()(long long place) const { return x[place] > 0; }
};
struct Keep {
  long long* y;
  __device__ void operator()(long long place, long long number, long long) const {
    y[number] = place;
  }
};
struct Copy {
  const float* x;
  float* y;
  long long length, columns;
  __device__ void operator()(long long line, long long place, long long column,
                             long long number) const {
    y[number] = x[(line * length + place) * columns + column];
  }
};
struct Above {
  const float* scores;
  long long length;
  float least;
  __device__ bool operator()(long long segment, long long box) const {
    return scores[segment * length + box] > least;
  }
};
struct ReadBox {
  const float* boxes;
  __device__ void operator()(long long, long long box, float (&coordinates)[4]) const {
    for (int k = 0; k < 4; ++k) coordinates[k] = boxes[4 * box + k];
  }
};
struct WriteBox {
  long long* y;
  __device__ void operator()(long long segment, long long box, long long number) const {
    y[2 * number] = segment;
    y[2 * number + 1] = box;
  }
};
extern "C" __global__ void __launch_bounds__(kSelectionThreads) flags(
    unsigned* words, unsigned* counts, long long places, Positive positive) {
  selection_flags(words, counts, places, positive);
}
extern "C" __global__ void __launch_bounds__(kSelectionThreads) places(
    const unsigned* words, const unsigned* counts, long long* found, long long places, Keep keep) {
  selection_places(words, counts, found, places, keep);
}
extern "C" __global__ void __launch_bounds__(kSelectionThreads) gather(
    const long long* list, const long long* found, long long lines, Copy copy) {
  selection_gather(list, found, lines, copy.columns, copy);
}
extern "C" __global__ void __launch_bounds__(kSuppressionThreads) boxes(
    const unsigned* positions, float4* boxes, SuppressionState* states, long long segments,
    Above above, ReadBox read) {
  suppression_boxes<false>(positions, boxes, states, segments, above.length, above, read);
}
extern "C" __global__ void __launch_bounds__(kSuppressionTile) overlaps(Suppression suppression,
                                                                        long long limit) {
  suppression_overlaps(suppression, limit);
}
extern "C" __global__ void __launch_bounds__(kSuppressionThreads) keep(Suppression suppression,
                                                                       long long limit) {
  suppression_keep(suppression, limit);
}
extern "C" __global__ void __launch_bounds__(kSuppressionThreads) write(
    const unsigned* positions, const unsigned* kept, const SuppressionState* states,
    long long* found, long long segments, long long length, WriteBox write) {
  suppression_write(positions, kept, states, found, segments, length, write);
}
)";

class SelectionTemplate : public ::testing::TestWithParam<codegen::Target> {};

TEST_P(SelectionTemplate, CompilesWithFunctorsWrittenByHand) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc: tools/setup.sh installs one";
  expect_in_registers(codegen::device_prelude(kHeaders) + kKernels, GetParam().architecture,
                      "selections");
}

INSTANTIATE_TEST_SUITE_P(Architectures, SelectionTemplate, ::testing::ValuesIn(kTargets),
                         target_name);

}  // namespace
}  // namespace redfuser::codegen_tests
