// Reductions of rows of few elements: one lane or a few have a row, in groups that divide it.
#include <fmt/format.h>

#include <algorithm>

#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  const char *graph, *reduction;  // over axis 1
  const char* family;
};

const Case kCases[] = {
    {"odd_floats", "(float[200000, 31] x) => (float[200000] y)", "ReduceMax", "reduce"},
    {"floats", "(float[200000, 32] x) => (float[200000] y)", "ReduceMax", "row_resident"},
    {"few_halves", "(float16[200000, 6] x) => (float16[200000] y)", "ReduceSum", "reduce"},
    {"halves", "(float16[200000, 48] x) => (float16[200000] y)", "ReduceSum", "row_resident"},
    {"of_many_rows", "(float16[b, 5] x) => (float16[b] y)", "ReduceSum", "row_resident"},
    {"rows_of_a_run", "(float[b, 40] x) => (float[b] y)", "ReduceProd", "row_resident"},
    {"elements_apart", "(float[300, 20, 500] x) => (float[300, 500] y)", "ReduceMax",
     "column_resident"},
};

class ShortRows : public ::testing::TestWithParam<Case> {};

TEST_P(ShortRows, HaveTheFamilyAndCompile) {
  const Model model = Model::parse(
      fmt::format("<ir_version: 9, opset_import: [\"\" : 18]> g {} {{ "
                  "a = Constant<value = int64[1] {{1}}>() y = {}<keepdims = 0>(x, a) }}",
                  GetParam().graph, GetParam().reduction));
  for (const codegen::Target& target : kTargets) {
    const GeneratedModel generated = generate_model(model, target);
    const bool known = std::string(GetParam().graph).find("[b") == std::string::npos;
    ASSERT_GE(generated.kernels.size(), 1u);
    if (known) EXPECT_EQ(generated.kernels.size(), 1u);
    EXPECT_EQ(generated.kernels[0].family, GetParam().family);
    if (Compiler::find()) expect_compiles(generated.kernels, target.architecture);
  }
}

// Groups divide the length, so that none is in part outside of its row.
TEST(ShortRowGroups, DivideTheLength) {
  struct Row {
    const char* type;
    int length, width;
  };
  const Row rows[] = {{"float", 2, 2},    {"float", 31, 1},  {"float", 32, 4},
                      {"float16", 13, 1}, {"float16", 6, 2}, {"bfloat16", 24, 8}};
  for (const Row& row : rows) {
    const Model model = Model::parse(
        fmt::format("<ir_version: 9, opset_import: [\"\" : 18]> g ({0}[200000, {1}] x) => "
                    "({0}[200000, {1}] y) {{ y = Softmax<axis = 1>(x) }}",
                    row.type, row.length));
    for (const codegen::Target& target : kTargets) {
      const GeneratedModel generated = generate_model(model, target);
      ASSERT_EQ(generated.kernels.size(), 1u);
      const auto& config = generated.kernels[0].config;
      const auto width = std::find_if(config.begin(), config.end(),
                                      [](const auto& each) { return each.first == "width"; });
      ASSERT_NE(width, config.end());
      EXPECT_EQ(width->second, row.width) << row.type << " " << row.length;
      if (Compiler::find()) expect_compiles(generated.kernels, target.architecture);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ShortRows, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen_tests
