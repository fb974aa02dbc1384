// Convolutions: every graph has the kernel of its family, and every configuration
// of it compiles without spills on every architecture.
#include <algorithm>

#include "codegen/convolution/convolution_config.h"
#include "codegen/convolution/window_product.h"
#include "codegen/orders/memory_orders.h"
#include "codegen/select/convolution_select.h"
#include "support/codegen_harness.h"
#include "support/convolution_draws.h"

namespace redfuser::codegen_tests {
namespace {

class CodegenConvolutions : public ::testing::TestWithParam<ConvolutionGraph> {};

TEST_P(CodegenConvolutions, HaveTheKernelOfTheirFamily) {
  for (const char* name : {"sm_80", "sm_90a", "sm_100a"}) {
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

class CodegenWindowProducts : public ::testing::TestWithParam<ConvolutionGraph> {};

// In registers, on the architecture that has the copies of windows.
TEST_P(CodegenWindowProducts, AreHoppers) {
  for (const char* name : {"sm_80", "sm_90a", "sm_100a"}) {
    const codegen::Target target = codegen::target_named(name);
    const GeneratedModel model = generate_model(Model::parse(GetParam().text), target);
    std::vector<codegen::KernelLaunch> kernels;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      if (kernel.family == GetParam().family) kernels.push_back(kernel);
    }
    EXPECT_EQ(kernels.size(), target.architecture == 90 ? 1u : 0u) << name;
    if (Compiler::find()) expect_compiles(kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, CodegenWindowProducts, ::testing::ValuesIn(window_graphs()),
                         name_of_convolution);

// Kernels of drawn convolutions compile without spills, whatever family computes them.
TEST(CodegenConvolutions, OfDrawnGraphsCompile) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  std::set<std::string> families;
  for (unsigned seed = 0; seed < 24; ++seed) {
    SCOPED_TRACE(seed);
    const codegen::Target& target = kTargets[seed % std::size(kTargets)];
    const Model model = Model::parse(DrawnConvolution(seed).graph(seed % 2 == 0 ? "5" : "n"));
    std::vector<codegen::KernelLaunch> kernels;
    for (const codegen::KernelLaunch& kernel : generate_model(model, target).kernels) {
      families.insert(kernel.family);
      if (kernel.family == codegen::kConvolutionFamily) kernels.push_back(kernel);
    }
    expect_compiles(kernels, target.architecture);
  }
  EXPECT_TRUE(families.count(codegen::kConvolutionFamily));
}

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
      const size_t before = kernels.size();
      for (const codegen::GpuCall& call : form.calls) {
        const auto* kernel = std::get_if<codegen::KernelLaunch>(&call);
        if (kernel != nullptr && codegen::is_convolution_family(kernel->family)) {
          kernels.push_back(*kernel);
        }
      }
      EXPECT_EQ(kernels.size(), before + 1) << graph.name;
    }
  }
  expect_compiles(kernels, target.architecture);
}

TEST(CodegenConvolutions, HaveConfigurationsThatCompile) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const char* name : {"sm_80", "sm_90a"}) {
    for (const ConvolutionGraph& graph : convolution_graphs()) {
      constexpr std::string_view kGraphs[] = {
          "three_by_three",    "depthwise", "depthwise_seven",  "floats",
          "volumes_of_floats", "volumes",   "depthwise_floats", "depthwise_signals",
      };
      if (std::count(std::begin(kGraphs), std::end(kGraphs), graph.name) == 0) continue;
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
    std::vector<codegen::KernelConfig> running;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      if (!codegen::is_convolution_family(kernel.family)) continue;
      if (evaluate_size(kernel.grid[0], symbols) == 0) continue;
      running.push_back({kernel.family, kernel.config});
    }
    EXPECT_EQ(running.size(), images > 0 ? 1u : 0u) << images;
    if (images == 1) {
      EXPECT_GE(running.at(0).at("blocks"), 4);
    }
    if (images == 2000) {
      EXPECT_EQ(running.at(0).at("blocks"), 1);
    }
  }
}

// Few images have tiles of single warps, and many those of warpgroups.
TEST(CodegenConvolutions, OpenBatchesHaveTheFasterFamily) {
  const std::vector<ConvolutionGraph> graphs = window_graphs();
  const GeneratedModel model =
      generate_model(Model::parse(graphs.back().text), codegen::target_named("sm_90a"));
  for (const int64_t images : {1, 64}) {
    const std::vector<int64_t> symbols(1024, images);
    std::vector<std::string> running;
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      if (evaluate_size(kernel.grid[0], symbols) == 0) continue;
      if (codegen::is_convolution_family(kernel.family)) running.push_back(kernel.family);
    }
    const char* family = images == 1 ? codegen::kConvolutionFamily : codegen::kWindowProductFamily;
    EXPECT_EQ(running, std::vector<std::string>{family});
  }
}

std::set<std::string> families_of(const std::string& graph, const codegen::Target& target) {
  std::set<std::string> families;
  const GeneratedModel model = generate_model(Model::parse(graph), target);
  for (const codegen::KernelLaunch& kernel : model.kernels) families.insert(kernel.family);
  return families;
}

std::string convolution_of(const std::string& input, const std::string& filter,
                           const std::string& attributes) {
  const std::string type = input.substr(0, input.find('['));
  return fmt::format(
      "<ir_version: 10, opset_import: [\"\" : 22]> g ({} x, {} w) => ({}[a, b, c, d] y) "
      "{{ y = Conv<{}>(x, w) }}",
      input, filter, type, attributes);
}

// Other types have other families, and so have floats whose products are to be exact.
TEST(CodegenConvolutions, OthersAreComputedOtherwise) {
  struct Case {
    const char *input, *filter, *attributes, *family;
    bool exact;
  };
  const Case cases[] = {
      {"double[n, 16, 9, 9]", "double[8, 16, 3, 3]", "group = 1", "image_to_columns", false},
      {"double[n, 12, 9, 9]", "double[8, 3, 3, 3]", "group = 4", "grouped_convolution", false},
      {"float[n, 16, 9, 9]", "float[8, 16, 3, 3]", "group = 1", "image_to_columns", true},
      {"float[n, 12, 9, 9]", "float[8, 3, 3, 3]", "group = 4", "grouped_convolution", true},
      {"float[n, 192, 56, 56]", "float[192, 1, 7, 7]", "group = 192", "depthwise", true},
  };
  for (const Case& c : cases) {
    codegen::Target target = codegen::target_named("sm_90a");
    target.exact_products = c.exact;
    const std::string graph = convolution_of(c.input, c.filter, c.attributes);
    EXPECT_TRUE(families_of(graph, target).count(c.family)) << graph;
  }
}

// Floats have two parts, unless they may be rounded.
TEST(CodegenConvolutions, FloatsAreRoundedWhereTheyMay) {
  const std::string graph =
      convolution_of("float[n, 64, 56, 56]", "float[64, 64, 3, 3]", "pads = [1, 1, 1, 1]");
  for (const bool rounded : {false, true}) {
    codegen::Target target = codegen::target_named("sm_90a");
    target.tf32 = rounded;
    int tiles = 0;
    for (const codegen::KernelLaunch& kernel :
         generate_model(Model::parse(graph), target).kernels) {
      if (kernel.family != codegen::kConvolutionFamily) continue;
      ++tiles;
      EXPECT_NE(kernel.source.find(rounded ? ", 2, 1>;" : ", 2, 2>;"), std::string::npos);
    }
    EXPECT_GE(tiles, 1);
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
