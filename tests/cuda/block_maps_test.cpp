// Attention that computes the maps which it reads, on a GPU against the CPU; skipped where there is
// no GPU.
#include <gtest/gtest.h>

#include <random>

#include "codegen/attention/mma/block_maps.h"
#include "redfuser/compare.h"
#include "redfuser/inputs.h"
#include "redfuser/redfuser.h"
#include "redfuser/state.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/rotary_attention.h"

namespace redfuser {
namespace {

class CudaBlockMaps : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
    on_gpu.device = "cuda";
  }

  static test_support::RotaryAttention drawn(std::mt19937& random) {
    const int groups[] = {1, 2, 3, 4, 8}, sizes[] = {16, 48, 64, 80, 128};
    test_support::RotaryAttention result;
    result.key_heads = 1 + static_cast<int>(random() % 5);
    result.heads = result.key_heads * groups[random() % 5];
    result.size = sizes[random() % 5];
    result.type = random() % 4 == 0 ? "float" : "float16";
    return result;
  }

  SessionOptions on_gpu;
};

// Caches of any length grow by a few tokens, which the kernel rotates and appends.
TEST_P(CudaBlockMaps, AgreeWithTheCpu) {
  std::mt19937 random(GetParam());
  const test_support::RotaryAttention attention = drawn(random);
  const std::string graph = attention.graph();
  const Model model = Model::parse(graph);
  const Program program = compile(model);
  Session gpu(program, on_gpu), cpu(program);
  States on_device(gpu, model), on_host(cpu, model);
  const auto batch = static_cast<int64_t>(1 + random() % 4);
  bool taken = false;
  for (const int64_t tokens : {int64_t{700}, int64_t{1}, int64_t{1}, int64_t{4}, int64_t{1}}) {
    NamedTensors inputs = random_inputs(
        model, {static_cast<uint64_t>(random()), {{"b", batch}, {"s", tokens}, {"p", 0}}, {}, {}});
    inputs.erase("past_0");
    inputs.erase("past_1");
    const NamedTensors got = on_device.run(inputs), expected = on_host.run(inputs);
    for (const Comparison& each : compare(got, expected, {0x1p-9, 0x1p-8})) {
      EXPECT_TRUE(each.passed) << graph << tokens << ": " << describe(each);
    }
    for (const std::string name : {"present_0", "present_1"}) {
      const auto states =
          compare({{name, on_device.read(name)}}, {{name, on_host.read(name)}}, {0x1p-9, 0x1p-8});
      EXPECT_TRUE(states[0].passed) << graph << tokens << ": " << describe(states[0]);
    }
    for (const StepFacts& facts : gpu.step_facts()) {
      taken |= facts.family == codegen::kBlockMapsFamily;
    }
  }
  EXPECT_TRUE(taken) << graph;
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaBlockMaps, ::testing::Range(0u, 24u));

}  // namespace
}  // namespace redfuser
