// Reductions over the columns of a product: which kernel takes them, on every architecture.
#include "codegen/row_product/row_product_config.h"
#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
  bool taken;  // on sm_90
};

std::string routing(const std::string& type, const std::string& rows, int hidden, int experts,
                    const std::string& nodes, bool transposed = false) {
  return fmt::format(
      "g ({0}[{1},{2}] x, {0}[{3}] w) => (float[{1},2] y, int64[{1},2] i) {{ "
      "k = Constant<value = int64[1] {{2}}>() {4} s = MatMul(x, {5}) f = Cast<to = 1>(s) {6} }}",
      type, rows, hidden,
      transposed ? fmt::format("{},{}", experts, hidden) : fmt::format("{},{}", hidden, experts),
      transposed ? "t = Transpose<perm = [1, 0]>(w)" : "", transposed ? "t" : "w", nodes);
}

const char* const kSoftmax = "p = Softmax<axis = -1>(f) y, i = TopK(p, k)";

std::vector<Case> cases() {
  return {
      {"routing", routing("float16", "4096", 2048, 128, kSoftmax), true},
      {"routing_by_rows", routing("bfloat16", "512", 5120, 160, kSoftmax, true), true},
      {"sigmoid", routing("float16", "4096", 768, 64, "p = Sigmoid(f) y, i = TopK(p, k)"), true},
      {"few_experts", routing("bfloat16", "2048", 1024, 8, kSoftmax, true), true},
      {"odd", routing("float16", "1000", 1000, 72, kSoftmax), true},
      {"rows_of_two_axes",
       "g (float16[8,512,768] x, float16[768,96] w) => (float[8,512] y) { s = MatMul(x, w) "
       "f = Cast<to = 1>(s) a = Constant<value = int64[1] {-1}>() "
       "y = ReduceLogSumExp<keepdims = 0>(f, a) }",
       true},
      {"argmax",
       "g (float16[16384,256] x, float16[240,256] w) => (int64[16384] y) { "
       "t = Transpose<perm = [1, 0]>(w) s = MatMul(x, t) y = ArgMax<axis = -1, keepdims = 0>(s) }",
       true},
      {"many_experts", routing("float16", "4096", 2048, 512, kSoftmax), false},
      {"floats", routing("float", "4096", 2048, 128, kSoftmax), false},
      // Rows of 63 elements are not aligned for TMA.
      {"unaligned", routing("float16", "4096", 2048, 63, kSoftmax), false},
  };
}

class CodegenRowProducts : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenRowProducts, AreOneLaunch) {
  const Case& c = GetParam();
  const TextModel file(c.graph);
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel model = generate_model(Model::load(file.path()), target);
    const bool taken =
        !model.kernels.empty() && model.kernels.front().family == codegen::kRowProductFamily;
    ASSERT_EQ(taken, c.taken && target.architecture == 90) << target.architecture;
    if (!taken) continue;
    EXPECT_EQ(model.products, 0);
    EXPECT_EQ(model.launches, 1);
    const codegen::KernelLaunch& kernel = model.kernels.front();
    const codegen::KernelConfig choice{kernel.family, kernel.config};
    EXPECT_EQ(kernel.cluster, choice.at("blocks"));
    if (Compiler::find()) expect_compiles(model.kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenRowProducts, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Every configuration compiles without spills.
TEST(CodegenRowProducts, HaveNoSpills) {
  if (!Compiler::find()) GTEST_SKIP() << "NVRTC is not there";
  for (const int experts : {16, 64, 128, 256}) {
    const TextModel file(routing("float16", "4096", 2048, experts, kSoftmax));
    CompileOptions options;
    options.certify = false;
    const Program program = compile(Model::load(file.path()), options);
    const runtime::CompiledProgram& compiled = *program.handle();
    const ir::Graph graph = clone(compiled.graph());
    const fuse::Step& step = compiled.plan.steps.front();
    for (const int rows : {64, 128}) {
      for (const int blocks : {1, 2, 4, 8}) {
        for (const int resident : {1, 2}) {
          if (resident == 2 && (experts > 128 || blocks > 1)) continue;
          const codegen::RowProductConfig config{rows, blocks, resident};
          const codegen::GpuStep made = codegen::generate(
              graph, step, kTargets[1],
              codegen::KernelConfig{codegen::kRowProductFamily, config.parameters()});
          ASSERT_EQ(made.calls.size(), 1);
          expect_compiles({std::get<codegen::KernelLaunch>(made.calls.front())}, 90);
        }
      }
    }
  }
}

// Each number of rows has one kernel.
TEST(CodegenRowProducts, OpenRowsAreServedByTheirNumber) {
  const TextModel file(routing("float16", "m", 2048, 128, kSoftmax));
  const GeneratedModel model = generate_model(Model::load(file.path()), kTargets[1]);
  for (const int64_t rows : {0, 1, 64, 1000, 2048, 2049, 4096, 8448, 8449, 100000}) {
    const std::vector<int64_t> symbols(1024, rows);
    int64_t kernels = 0;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      EXPECT_EQ(kernel.family, codegen::kRowProductFamily);
      kernels += evaluate_size(kernel.grid[0], symbols) > 0;
    }
    EXPECT_EQ(kernels, rows > 0) << rows;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
