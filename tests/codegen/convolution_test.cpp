// Convolutions of 16-bit floats: every graph has the kernel of its family, and every configuration
// of it compiles without spills on every architecture.
#include <algorithm>

#include "codegen/convolution/convolution_config.h"
#include "codegen/select/convolution_select.h"
#include "codegen/select/memory_orders.h"
#include "support/codegen_harness.h"
#include "support/convolution_graphs.h"

namespace redfuser::codegen_tests {
namespace {

class CodegenConvolutions : public ::testing::TestWithParam<ConvolutionGraph> {};

TEST_P(CodegenConvolutions, HaveTheKernelOfTheirFamily) {
  for (const char* name : {"sm_80", "sm_89", "sm_90a"}) {
    const codegen::Target target = codegen::target_named(name);
    const GeneratedModel model = generate_model(Model::parse(GetParam().text), target);
    std::vector<codegen::KernelLaunch> kernels;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      if (kernel.family != GetParam().family) continue;
      EXPECT_LE(kernel.cluster, target.architecture < 90 ? 1 : 8);
      EXPECT_LE(kernel.shared, target.shared_bytes);
      kernels.push_back(kernel);
    }
    EXPECT_GE(kernels.size(), 1u) << name;
    if (Compiler::find()) expect_compiles(kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenConvolutions, ::testing::ValuesIn(convolution_graphs()),
                         name_of_convolution);

// The convolution of a graph by each configuration that is offered at this size.
void expect_configurations(const ConvolutionGraph& graph, int64_t size, codegen::Target target,
                           std::set<std::string>& seen) {
  CompileOptions options;
  options.certify = false;
  const Program program = compile(Model::parse(graph.text), options);
  const runtime::CompiledProgram& compiled = *program.handle();
  target.orders =
      std::make_shared<codegen::MemoryOrders>(codegen::memory_orders(compiled.plan, {}));
  const std::vector<int64_t> symbols(compiled.symbol_names.size() + 1024, size);
  std::vector<codegen::KernelLaunch> kernels;
  for (const fuse::Step& step : compiled.plan.steps) {
    if (!std::holds_alternative<fuse::OpaqueStep>(step.kind)) continue;
    for (const auto& candidate : kernel_configs(compiled.graph(), step, target, symbols)) {
      if (!seen.insert(to_string(candidate.choice)).second) continue;
      const codegen::GpuStep form = generate(compiled.graph(), step, target, candidate.choice);
      kernels.push_back(std::get<codegen::KernelLaunch>(form.calls.back()));
      EXPECT_EQ(kernels.back().family, graph.family);
    }
  }
  expect_compiles(kernels, target.architecture);
}

TEST(CodegenConvolutions, HaveConfigurationsThatCompile) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const char* name : {"sm_80", "sm_90a"}) {
    for (const ConvolutionGraph& graph : convolution_graphs()) {
      if (graph.name != "three_by_three" && graph.name != "depthwise_seven" &&
          graph.name != "depthwise") {
        continue;
      }
      std::set<std::string> seen;
      for (const int64_t size : {1, 32}) {
        expect_configurations(graph, size, codegen::target_named(name), seen);
      }
      EXPECT_GE(seen.size(), 4u) << graph.name;
    }
  }
}

// Each number of images has one kernel, and the blocks of clusters divide the depth of few.
TEST(CodegenConvolutions, OpenBatchesAreServedByTheirNumber) {
  const GeneratedModel model = generate_model(
      Model::parse("<ir_version: 10, opset_import: [\"\" : 22]> g (float16[n, 512, 7, 7] x, "
                   "float16[512, 512, 3, 3] w) => (float16[n, 512, 7, 7] y) "
                   "{ y = Conv<pads = [1, 1, 1, 1]>(x, w) }"),
      codegen::target_named("sm_90a"));
  for (const int64_t images : {0, 1, 6, 40, 200, 2000}) {
    const std::vector<int64_t> symbols(1024, images);
    int running = 0, blocks = 0;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      if (kernel.family != codegen::kConvolutionFamily) continue;
      if (evaluate_size(kernel.grid[0], symbols) == 0) continue;
      ++running;
      blocks = codegen::KernelConfig{kernel.family, kernel.config}.at("blocks");
    }
    EXPECT_EQ(running, images > 0) << images;
    if (images == 1) {
      EXPECT_GE(blocks, 4);
    }
    if (images == 2000) {
      EXPECT_EQ(blocks, 1);
    }
  }
}

// Windows that do not fit in registers, other types and other ranks have other families.
TEST(CodegenConvolutions, OthersAreComputedOtherwise) {
  struct Case {
    const char *input, *filter, *attributes, *family;
  };
  const Case cases[] = {
      {"float[n, 16, 9, 9]", "float[8, 16, 3, 3]", "group = 1", "image_to_columns"},
      {"float16[n, 16, 9, 9, 9]", "float16[8, 16, 3, 3, 3]", "group = 1", "image_to_columns"},
      {"float16[n, 12, 9, 9]", "float16[8, 3, 3, 3]", "group = 4", "grouped_convolution"},
      {"float16[n, 7, 9, 900]", "float16[7, 1, 3, 31]", "group = 7, dilations = [1, 20]",
       "grouped_convolution"},
  };
  for (const Case& c : cases) {
    const std::string input = c.input;
    const std::string type = input.substr(0, input.find('['));
    const bool volume = std::count(input.begin(), input.end(), ',') == 4;
    const std::string graph = fmt::format(
        "<ir_version: 10, opset_import: [\"\" : 22]> g ({} x, {} w) => ({}[{}] y) "
        "{{ y = Conv<{}>(x, w) }}",
        input, c.filter, type, volume ? "a, b, c, d, e" : "a, b, c, d", c.attributes);
    const GeneratedModel model =
        generate_model(Model::parse(graph), codegen::target_named("sm_90a"));
    std::set<std::string> families;
    for (const codegen::KernelLaunch& kernel : model.kernels) families.insert(kernel.family);
    EXPECT_TRUE(families.count(c.family)) << graph;
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
