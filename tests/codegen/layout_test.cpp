// Rows of any axis and layout: which family takes them, and that its kernels keep their registers.
#include <fmt/format.h>

#include "codegen/core/kernel_config.h"
#include "support/codegen_harness.h"
#ifdef REDFUSER_TESTS_WORKLOADS
#include "bench_workload.h"

namespace redfuser::codegen_tests {
namespace {

using tools::LayoutShape;
using Kind = tools::LayoutKind;

struct Case {
  const char* name;
  LayoutShape shape;
  const char* family;  // how the name of its first kernel starts
};

const Case kCases[] = {
    {"softmax_axis1", {Kind::Softmax, {64, 512, 196}, {1}}, "column_"},
    {"softmax_axis1_odd", {Kind::Softmax, {64, 512, 197}, {1}}, "column_resident"},
    {"softmax_axis1_fp32",
     {Kind::Softmax, {8, 61, 36}, {1}, {}, DType::Float32},
     "column_resident"},
    {"softmax_axis0_long", {Kind::Softmax, {65536, 128}, {0}}, "column_partials"},
    {"softmax_last", {Kind::Softmax, {64, 196, 512}, {2}}, "row_resident"},
    {"softmax_axes02", {Kind::Softmax, {32, 64, 32, 128}, {0, 2}}, "column_"},
    {"softmax_axes13", {Kind::Softmax, {16, 64, 64, 128}, {1, 3}}, "row_"},
    {"groupnorm", {Kind::Norm, {16, 32, 16, 64, 64}, {2, 3, 4}, {1, 2}}, "row_cluster"},
    {"groupnorm_odd", {Kind::Norm, {8, 32, 10, 7, 7}, {2, 3, 4}, {1, 2}}, "row_resident"},
    {"groupnorm_nhwc", {Kind::Norm, {16, 4096, 32, 16}, {1, 3}, {2, 3}}, "column_"},
    {"groupnorm_nhwc_narrow", {Kind::Norm, {16, 4096, 32, 8}, {1, 3}, {2, 3}}, "column_"},
    {"instancenorm_nhwc", {Kind::Norm, {8, 65536, 64}, {1}, {2}}, "column_partials"},
    {"batchnorm", {Kind::Norm, {32, 256, 56, 56}, {0, 2, 3}, {1}}, "row_cluster"},
    {"batchnorm_odd", {Kind::Norm, {32, 256, 7, 7}, {0, 2, 3}, {1}}, "row_"},
    {"batchnorm_nhwc", {Kind::Norm, {32, 56, 56, 256}, {0, 1, 2}, {3}}, "column_partials"},
    {"column_sums", {Kind::Sum, {4096, 8192}, {0}}, "column_"},
    {"few_column_sums", {Kind::Sum, {100000, 64}, {0}}, "column_segments"},
    {"column_max", {Kind::Max, {4096, 4099}, {0}, {}, DType::Float32}, "column_"},
    {"row_sums", {Kind::Sum, {4096, 8192}, {1}}, "row_"},
    {"distant_sums", {Kind::Sum, {64, 256, 1024}, {0, 2}}, "row_"},
    {"distant_variance", {Kind::Variance, {64, 256, 1024}, {0, 2}}, "row_"},
    {"variance_bf16", {Kind::Variance, {1021, 24}, {0}, {}, DType::BFloat16}, "column_"},
};

class CodegenLayout : public ::testing::TestWithParam<Case> {};

TEST_P(CodegenLayout, IsServedByItsFamilyWithoutSpills) {
  const Model model = Model::parse(tools::layout_model(GetParam().shape));
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel generated = generate_model(model, target);
    ASSERT_FALSE(generated.kernels.empty());
    if (target.architecture == 90) {
      EXPECT_TRUE(generated.kernels[0].family.starts_with(GetParam().family))
          << generated.kernels[0].family;
    }
    if (Compiler::find()) expect_compiles(generated.kernels, target.architecture, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CodegenLayout, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// A graph with one step becomes one kernel: the whole of a norm is one pass over its rows.
TEST(CodegenLayouts, NormsOfGroupsAreOneRegion) {
  for (const char* graph :
       {"g (float16[2,64,8,8] x, float16[64] s, float16[64] b) => (float16[2,64,8,8] y) "
        "{ y = GroupNormalization<num_groups = 8>(x, s, b) }",
        "g (float16[n,64,h,w] x, float16[64] s, float16[64] b) => (float16[n,64,h,w] y) "
        "{ y = InstanceNormalization(x, s, b) }"}) {
    const Model model =
        Model::parse(fmt::format("<ir_version: 9, opset_import: [\"\" : 21]> {}", graph));
    EXPECT_EQ(generate_model(model).launches, 1) << graph;
  }
}

// A load among the divisions of an element waits for them, so weights of the streamed axis are
// among the words that a thread loads before it merges.
TEST(CodegenLayouts, WeightsOfTheAxisAreLoadedWithTheElements) {
  const Model model = Model::parse(
      "<ir_version: 9, opset_import: [\"\" : 20]> g (float[744, 32] x, float[744, 1] w) => (y) {"
      " axes = Constant<value = int64[1] {0}>() q = Mul(x, x) m = ReduceMean(q, axes) r = Sqrt(m)"
      " d = Div(x, r) y = Mul(d, w) }");
  const GeneratedModel generated = generate_model(model);
  ASSERT_EQ(generated.kernels.size(), 1u);
  const std::string& text = generated.kernels[0].source;
  EXPECT_NE(text.find("load_column<float, 1, false>(words.k1"), std::string::npos) << text;
  const std::string map = text.substr(text.find(" map(Values&"));
  EXPECT_EQ(map.substr(0, map.find(" put(")).find("load"), std::string::npos) << map;
  if (Compiler::find()) expect_compiles(generated.kernels, 90, 0);
}

// What --tune may choose.
TEST(CodegenLayouts, ChoicesCompile) {
  if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
  for (const LayoutShape& shape : {LayoutShape{Kind::Softmax, {64, 512, 196}, {1}},
                                   LayoutShape{Kind::Norm, {8, 4096, 64}, {1}, {2}},
                                   LayoutShape{Kind::Sum, {4096, 1000}, {0}}}) {
    CompileOptions options;
    options.certify = false;
    const Program program = compile(Model::parse(tools::layout_model(shape)), options);
    const ir::Graph graph = clone(program.handle()->graph());
    const codegen::Target target = codegen::target_named("sm_90a");
    for (const fuse::Step& step : program.handle()->plan.steps) {
      const auto choices = kernel_configs(graph, step, target, {});
      EXPECT_GT(choices.size(), 2u);
      for (const auto& [choice, time] : choices) {
        SCOPED_TRACE(to_string(choice));
        for (const codegen::GpuCall& call : generate(graph, step, target, choice).calls) {
          expect_compiles({std::get<codegen::KernelLaunch>(call)}, 90, 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
#endif
