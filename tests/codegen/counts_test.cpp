// Generated kernels divide by the exact count for every tensor type.
#include <fmt/format.h>

#include "support/codegen_harness.h"
#include "support/text_model.h"

namespace redfuser::codegen_tests {
namespace {

constexpr int kSpill = 128;  // bytes: rows over two dimensions divide their positions

// 100000 elements are reduced to one; %s is the type.
struct Case {
  const char* name;
  const char* graph;
};

constexpr Case kCases[] = {
    {"mean_of_rows",
     "g (%s[4, 100000] x) => (%s[4] y) { y = ReduceMean<axes = [1], keepdims = 0>(x) }"},
    {"mean_of_columns",
     "g (%s[100000, 3] x) => (%s[3] y) { y = ReduceMean<axes = [0], keepdims = 0>(x) }"},
    {"mean_of_axes_apart",
     "g (%s[400, 3, 250] x) => (%s[3] y) { y = ReduceMean<axes = [0, 2], keepdims = 0>(x) }"},
    {"global_average_pool",
     "g (%s[2, 3, 400, 250] x) => (%s[2, 3, 1, 1] y) { y = GlobalAveragePool(x) }"},
    {"average_pool",
     "g (%s[2, 3, 400, 250] x) => (%s[2, 3, 1, 1] y) "
     "{ y = AveragePool<kernel_shape = [400, 250]>(x) }"},
    {"instance_normalization",
     "g (%s[2, 3, 400, 250] x, %s[3] s, %s[3] b) => (%s[2, 3, 400, 250] y) "
     "{ y = InstanceNormalization(x, s, b) }"},
    {"batch_normalization",
     "g (%s[1, 3, 400, 250] x, %s[3] s, %s[3] b, %s[3] m, %s[3] v) => "
     "(%s[1, 3, 400, 250] y, %s[3] u, %s[3] w) "
     "{ y, u, w = BatchNormalization<training_mode = 1>(x, s, b, m, v) }"},
    {"mean_variance_normalization",
     "g (%s[1, 3, 400, 250] x) => (%s[1, 3, 400, 250] y) { y = MeanVarianceNormalization(x) }"},
};

std::string of_type(std::string graph, const std::string& type) {
  for (size_t at = graph.find("%s"); at != std::string::npos; at = graph.find("%s")) {
    graph.replace(at, 2, type);
  }
  return graph;
}

class CodegenCounts : public ::testing::TestWithParam<std::tuple<Case, const char*>> {};

TEST_P(CodegenCounts, AreExact) {
  const auto& [given, type] = GetParam();
  const TextModel model(of_type(given.graph, type), 17);
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel generated = generate_model(model.path(), target);
    bool counts = false;
    for (const codegen::KernelLaunch& kernel : generated.kernels) {
      counts |= kernel.source.find(fmt::format("({:a}f)", 100000.0)) != std::string::npos;
      EXPECT_EQ(kernel.source.find("(INFINITY_F)"), std::string::npos) << kernel.source;
      EXPECT_EQ(kernel.source.find("/ INFINITY_F"), std::string::npos) << kernel.source;
    }
    EXPECT_TRUE(counts) << "no kernel divides by 100000";
    if (Compiler::find()) expect_compiles(generated.kernels, target.architecture, kSpill);
  }
}

INSTANTIATE_TEST_SUITE_P(Operators, CodegenCounts,
                         ::testing::Combine(::testing::ValuesIn(kCases),
                                            ::testing::Values("float16", "bfloat16", "float")),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param).name,
                                              std::get<1>(info.param));
                         });

}  // namespace
}  // namespace redfuser::codegen_tests
