// Chained products on a GPU against double precision. They are skipped without a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>

#include "redfuser/compare.h"
#include "redfuser/redfuser.h"
#include "redfuser/verify.h"
#include "runtime/gpu/make_cuda_executor.h"
#include "support/chain_graphs.h"
#include "support/kernel_families.h"

namespace redfuser {
namespace {

using testing::DrawnChain;

class CudaChains : public ::testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  }
};

TEST_P(CudaChains, AgreeWithDoublePrecision) {
  const DrawnChain drawn(GetParam());
  SessionOptions on_gpu, exact;
  on_gpu.device = "cuda";
  exact.device = "reference";
  const Program open = compile(Model::parse(drawn.graph("rows")));
  Session open_gpu(open, on_gpu), reference(open, exact);
  unsigned turn = GetParam();
  for (const int64_t rows : {1, 7, 16, 17, 64, 100, 127, 128, 129}) {
    const std::string text = fmt::format("{} of {} rows", drawn.graph("rows"), rows);
    const NamedTensors inputs = drawn.inputs(rows, GetParam() + 1);
    const NamedTensors expected = reference.run(inputs);
    // Every fourth time of known rows too.
    std::optional<Session> known_gpu;
    if (turn++ % 4 == 0) {
      known_gpu.emplace(compile(Model::parse(drawn.graph(std::to_string(rows)))), on_gpu);
    }
    // Roundings of the operand in between, and of the sums.
    const double unit = drawn.dtype == DType::Float16 ? 0x1p-10 : 0x1p-7;
    const Tolerance tolerance{4 * unit, 8 * unit};
    for (Session* gpu : {&open_gpu, known_gpu ? &*known_gpu : nullptr}) {
      if (gpu == nullptr) continue;
      const NamedTensors got = gpu->run(inputs);
      for (const Comparison& comparison : compare(got, expected, tolerance)) {
        EXPECT_TRUE(comparison.passed) << text << ": " << describe(comparison);
      }
      // A second run, as a recorded graph, gives the same bits.
      for (const Comparison& comparison : compare(gpu->run(inputs), got, {0, 0})) {
        EXPECT_TRUE(comparison.passed) << text << ": " << describe(comparison);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaChains, ::testing::Range(0u, 24u));

TEST(CudaChain, IsOneLaunch) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  DrawnChain drawn(0);
  drawn.depth = 512, drawn.inner = 256, drawn.width = 64;
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  Session session(compile(Model::parse(drawn.graph("128"))), on_gpu);
  session.run(drawn.inputs(128, 1));
  EXPECT_TRUE(testing::has_family(session, "product_chain")) << drawn.graph("128");
}

// The first product's result is not written, and so neither kept nor compared.
TEST(CudaChain, IsVerifiedByItsLastValue) {
  if (!runtime::has_gpu()) GTEST_SKIP() << "the CUDA driver shows no GPU";
  DrawnChain drawn(0);
  drawn.depth = 512, drawn.inner = 256, drawn.width = 64;
  SessionOptions on_gpu;
  on_gpu.device = "cuda";
  const Model model = Model::parse(drawn.graph("128"));
  const Program program = compile(model);
  const NamedTensors inputs = drawn.inputs(128, 1);
  const Verification found = verify_steps(model, program, inputs, {}, on_gpu);
  EXPECT_EQ(found.compared_steps, found.steps - 1) << drawn.graph("128");
  for (const Comparison& failed : found.failed) ADD_FAILURE() << describe(failed);
  Session session(program, on_gpu);
  session.keep_values(true);
  session.run(inputs);
  EXPECT_EQ(session.kept_values().size(), 1u);
}

}  // namespace
}  // namespace redfuser
