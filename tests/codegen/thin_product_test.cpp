// Products of few rows or columns: which kernel takes them, for which sizes, on every architecture.
#include "codegen/product/thin_config.h"
#include "support/codegen_harness.h"
#include "support/text_model.h"
#include "support/weight_code_graphs.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  std::string graph;
  int lines;  // of the kernel; 0: the library computes it
};

std::vector<Case> cases() {
  return {
      {"gated",
       "g (float16[1,2048] x, float16[2048,8192] w, float16[2048,8192] u) => (float16[1,8192] y) "
       "{ p = MatMul(x, w) q = MatMul(x, u) s = Sigmoid(p) t = Mul(p, s) y = Mul(t, q) }",
       8},
      {"gated_by_rows",
       "g (bfloat16[3,2048] x, bfloat16[8192,2048] w, bfloat16[8192,2048] u) => "
       "(bfloat16[3,8192] y) { a = Transpose(w) b = Transpose(u) p = MatMul(x, a) "
       "q = MatMul(x, b) t = Tanh(p) y = Mul(t, q) }",
       8},
      {"scalar", "g (float[1,1000] x, float[1000,1] w) => (float[1,1] y) { y = MatMul(x, w) }", 1},
      {"scalars_of_rows",
       "g (float[8,2048] x, float[2048,8192] w) => (float[8,8192] y) { y = MatMul(x, w) }", 8},
      {"columns", "g (float[311,5428] x, float[5428,3] w) => (float[311,3] y) { y = MatMul(x, w) }",
       4},
      {"halves_of_columns",
       "g (bfloat16[65536,64] x, bfloat16[64,2] w) => (bfloat16[65536,2] y) { y = MatMul(x, w) }",
       8},
      // Rows that start anywhere.
      {"odd",
       "g (float16[3,999] x, float16[999,1999] w) => (float16[3,1999] y) "
       "{ p = MatMul(x, w) y = Relu(p) }",
       8},
      {"batch", "g (float[5,2,700] x, float[5,700,64] w) => (float[5,2,64] y) { y = MatMul(x, w) }",
       2},
      {"many_rows",
       "g (float16[64,512] x, float16[512,512] w) => (float16[64,512] y) "
       "{ y = MatMul(x, w) }",
       0},
      {"open_depth",
       "g (float16[1,k] x, float16[k,512] w) => (float16[1,512] y) "
       "{ y = MatMul(x, w) }",
       0},
      {"doubles", "g (double[1,64] x, double[64,512] w) => (double[1,512] y) { y = MatMul(x, w) }",
       0},
  };
}

const codegen::KernelLaunch* thin_of(const GeneratedModel& model) {
  for (const codegen::KernelLaunch& kernel : model.kernels) {
    if (kernel.family == codegen::kThinProductFamily) return &kernel;
  }
  return nullptr;
}

class CodegenThinProducts : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenThinProducts, HaveAKernelOfTheirOwn) {
  const Case& c = GetParam();
  const TextModel file(c.graph);
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel model = generate_model(Model::load(file.path()), target);
    const codegen::KernelLaunch* kernel = thin_of(model);
    // Estimates differ between machines.
    if (target.architecture == 90) {
      ASSERT_EQ(kernel != nullptr, c.lines > 0) << target.architecture;
    }
    if (kernel == nullptr) continue;
    EXPECT_EQ(model.products, 0);
    EXPECT_EQ(model.launches, 1);
    const codegen::KernelConfig choice{kernel->family, kernel->config};
    EXPECT_EQ(choice.at("lines"), c.lines);
    EXPECT_EQ(kernel->cluster, choice.at("blocks"));
    EXPECT_LE(kernel->cluster, target.architecture < 90 ? 1 : 8);
    if (Compiler::find()) expect_compiles(model.kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenThinProducts, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// Each number of rows has one kernel, or the library.
TEST(CodegenThinProducts, OpenRowsAreServedByTheirNumber) {
  const TextModel file(
      "g (float16[m,2048] x, float16[2048,8192] w, float16[2048,8192] u) => (float16[m,8192] y) "
      "{ p = MatMul(x, w) q = MatMul(x, u) s = Sigmoid(p) t = Mul(p, s) y = Mul(t, q) }");
  const GeneratedModel model = generate_model(Model::load(file.path()), kTargets[1]);
  for (const int64_t rows : {0, 1, 7, 8, 9, 16, 17, 4096}) {
    const std::vector<int64_t> symbols(1024, rows);
    int64_t lines = 0, thin = 0, tiles = 0, library = 0;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      int64_t blocks = 1;
      for (const ir::Expr grid : kernel.grid) blocks *= evaluate_size(grid, symbols);
      if (blocks == 0) continue;
      if (kernel.family == codegen::kThinProductFamily) {
        ++thin;
        lines = codegen::KernelConfig{kernel.family, kernel.config}.at("lines");
      }
      tiles += kernel.family == "product_tile" || kernel.family == "product_cluster";
    }
    for (const codegen::ProductCall& call : model.product_calls) {
      library += evaluate_size(call.m, symbols) > 0;
    }
    EXPECT_EQ(thin, rows >= 1 && rows <= 16) << rows;
    EXPECT_EQ(lines, thin == 0 ? 0 : rows <= 8 ? 8 : 16) << rows;
    EXPECT_EQ(thin + tiles + (library > 0), rows > 0) << rows;
  }
}

// Weights of few bits are read as they are stored, whatever the number of rows.
class CodegenWeightCodes : public ::testing::TestWithParam<WeightCodeGraph> {};

TEST_P(CodegenWeightCodes, AreReadByTheKernelOfThinProducts) {
  const WeightCodeGraph& c = GetParam();
  CompileOptions options;
  options.certify = false;
  const Program program = compile(Model::parse(c.text), options);
  const fuse::Plan& plan = program.handle()->plan;
  const std::string code =
      fmt::format("ThinCode<{}, {}, {}>", c.bits, std::min(c.block, c.depth), c.zeros);
  for (const codegen::Target& target : kTargets) {
    std::vector<codegen::KernelLaunch> kernels;
    for (const fuse::Step& step : plan.steps) {
      if (!std::holds_alternative<fuse::ProductStep>(step.kind)) continue;
      const codegen::GpuStep form =
          generate(*plan.graph, step, target, {codegen::kThinProductFamily, {}});
      for (const codegen::GpuCall& call : form.calls) {
        const auto* launch = std::get_if<codegen::KernelLaunch>(&call);
        if (launch == nullptr || launch->family != codegen::kThinProductFamily) continue;
        kernels.push_back(*launch);
        EXPECT_NE(launch->source.find(code), std::string::npos) << code;
        EXPECT_EQ(launch->early, target.starts_early());
      }
    }
    EXPECT_GE(kernels.size(), 2u);  // for different numbers of rows
    // The templates' own test compiles them for every architecture.
    if (target.architecture == 90 && Compiler::find()) expect_compiles(kernels, 90);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenWeightCodes, ::testing::ValuesIn(weight_code_graphs()),
                         name_of_codes);

}  // namespace
}  // namespace redfuser::codegen_tests
