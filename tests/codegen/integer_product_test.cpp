// Products of 8-bit integers: every graph has the kernel of the tensor cores, and every
// configuration of it compiles without spills on every architecture.
#include "codegen/integer_product/integer_config.h"
#include "support/codegen_harness.h"
#include "support/integer_products.h"

namespace redfuser::codegen_tests {
namespace {

class CodegenIntegerProducts : public ::testing::TestWithParam<IntegerProductGraph> {};

TEST_P(CodegenIntegerProducts, AreOfTheTensorCores) {
  for (const char* name : {"sm_80", "sm_90a"}) {
    const codegen::Target target = codegen::target_named(name);
    const GeneratedModel model = generate_model(Model::parse(GetParam().text), target);
    std::vector<codegen::KernelLaunch> kernels;
    int running = 0;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      if (kernel.family != codegen::kIntegerProductFamily) continue;
      running += evaluate_size(kernel.grid[0], std::vector<int64_t>(1024, 128)) > 0;
      EXPECT_LE(kernel.cluster, target.architecture < 90 ? 1 : 8);
      EXPECT_LE(kernel.shared, target.shared_bytes);
      kernels.push_back(kernel);
    }
    EXPECT_EQ(running, 1) << name;
    if (Compiler::find()) expect_compiles(kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenIntegerProducts,
                         ::testing::ValuesIn(integer_product_graphs()), name_of_integers);

// The only step of a graph by each configuration that is offered for these many rows.
void expect_configurations(const std::string& graph, int64_t rows, const codegen::Target& target,
                           std::set<std::string>& seen) {
  CompileOptions options;
  options.certify = false;
  const Program program = compile(Model::parse(graph), options);
  const runtime::CompiledProgram& compiled = *program.handle();
  const std::vector<int64_t> symbols(compiled.symbol_names.size() + 1024, rows);
  const fuse::Step& step = compiled.plan.steps.back();
  std::vector<codegen::KernelLaunch> kernels;
  for (const auto& candidate : kernel_configs(compiled.graph(), step, target, symbols)) {
    if (!seen.insert(to_string(candidate.choice)).second) continue;
    const codegen::GpuStep form = generate(compiled.graph(), step, target, candidate.choice);
    ASSERT_EQ(form.calls.size(), 1u);
    kernels.push_back(std::get<codegen::KernelLaunch>(form.calls[0]));
  }
  expect_compiles(kernels, target.architecture);
}

TEST(CodegenIntegerProducts, HaveConfigurationsThatCompile) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const char* name : {"sm_80", "sm_89", "sm_90a"}) {
    for (const IntegerProductGraph& graph : integer_product_graphs()) {
      if (graph.name != "zeros_of_lines" && graph.name != "gated" &&
          graph.name != "weights_by_columns") {
        continue;
      }
      std::set<std::string> seen;
      for (const int64_t rows : {1, 300}) {
        expect_configurations(graph.text, rows, codegen::target_named(name), seen);
      }
      EXPECT_GE(seen.size(), 5u) << graph.name;
    }
  }
}

// Each number of rows has one kernel, with as many rows in a tile as it needs.
TEST(CodegenIntegerProducts, OpenRowsAreServedByTheirNumber) {
  const GeneratedModel model = generate_model(
      Model::parse("<ir_version: 10, opset_import: [\"\" : 21]> g (uint8[m, 4096] a, "
                   "int8[4096, 4096] b, uint8 z) => (int32[m, 4096] y) "
                   "{ y = MatMulInteger(a, b, z) }"),
      codegen::target_named("sm_90a"));
  for (const int64_t rows : {0, 1, 16, 17, 64, 65, 512, 513, 8192}) {
    const std::vector<int64_t> symbols(1024, rows);
    int running = 0, tile = 0;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      if (evaluate_size(kernel.grid[0], symbols) == 0) continue;
      ++running;
      tile = codegen::KernelConfig{kernel.family, kernel.config}.at("rows");
    }
    EXPECT_EQ(running, rows > 0) << rows;
    if (rows > 0 && rows <= 16) {
      EXPECT_EQ(tile, 16) << rows;
    }
    if (rows > 512) {
      EXPECT_EQ(tile, 128) << rows;
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
