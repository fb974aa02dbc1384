// Rows that are sorted by several blocks: the family, and that its kernels compile and fit.
#include <algorithm>

#include "support/codegen_harness.h"
#include "support/sort_cases.h"

namespace redfuser::codegen_tests {
namespace {

using redfuser::testing::kSortCases;
using redfuser::testing::sort_graph;
using redfuser::testing::SortCase;

class CodegenSort : public ::testing::TestWithParam<SortCase> {};

TEST_P(CodegenSort, CompilesEverywhere) {
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel model =
        generate_model(Model::parse(sort_graph(GetParam(), 16, 131072, 131072)), target);
    ASSERT_GE(model.kernels.size(), 5u);
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      EXPECT_TRUE(kernel.family.starts_with("sort_")) << kernel.family;
      EXPECT_LE(kernel.static_shared, 48 << 10);
    }
    if (!Compiler::find()) GTEST_SKIP() << "no libnvrtc";
    constexpr int kCall = 80;  // around the slow path of a division
    expect_compiles(model.kernels, target.architecture, kCall);
    for (const codegen::KernelLaunch& kernel : model.kernels) {
      const auto built = Compiler::find()->compile(kernel.source, target.architecture);
      EXPECT_GE(kernel.static_shared, built.shared) << kernel.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CodegenSort, ::testing::ValuesIn(kSortCases),
                         [](const auto& info) { return std::string(info.param.name); });

// Elements in memory of 16 bits differ in fewer digits.
TEST(CodegenSortPasses, AreAsManyAsDigits) {
  const auto passes = [](const SortCase& c) {
    const GeneratedModel model = generate_model(Model::parse(sort_graph(c, 4, 50000, 50000)));
    return std::count_if(model.kernels.begin(), model.kernels.end(),
                         [](const auto& kernel) { return kernel.family == "sort_pass"; });
  };
  EXPECT_EQ(passes(kSortCases[0]), 4);
  EXPECT_EQ(passes(kSortCases[2]), 3);
  EXPECT_EQ(passes(kSortCases[3]), 2);
  EXPECT_EQ(passes(kSortCases[4]), 8);
}

// A large k of open sizes: no family that holds the results in shared memory offers itself.
TEST(CodegenSortPasses, ServeOpenSizes) {
  for (const int64_t k : {5000, 20000, 1000000}) {
    for (const char* dims : {"m,n", "m,1000000", "7,n"}) {
      const std::string results = std::string(dims).substr(0, 2) + std::to_string(k);
      const GeneratedModel model = generate_model(Model::parse(fmt::format(
          "<ir_version: 9, opset_import: [\"\" : 20]> g (float[{}] x) => (float[{}] y) {{ "
          "k = Constant<value = int64[1] {{{}}}>() y, i = TopK(x, k) }}",
          dims, results, k)));
      for (const codegen::KernelLaunch& kernel : model.kernels) {
        EXPECT_TRUE(kernel.family.starts_with("sort_") || kernel.family.starts_with("ranking_"))
            << kernel.family;
      }
    }
  }
}

}  // namespace
}  // namespace redfuser::codegen_tests
