// Reductions of rows of few elements: one lane or a few have a row, in groups that divide it.
#include <fmt/format.h>

#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  const char *graph, *reduction;  // over axis 1
  const char* family;
  int width = 0;  // of the lanes' groups, where one is expected
};

const Case kCases[] = {
    {"two_floats", "(float[200000, 2] x) => (float[200000] y)", "ReduceMax", "row_resident", 2},
    {"odd_floats", "(float[200000, 31] x) => (float[200000] y)", "ReduceMax", "row_resident", 1},
    {"floats", "(float[200000, 32] x) => (float[200000] y)", "ReduceMax", "row_resident", 4},
    {"odd_halves", "(float16[200000, 13] x) => (float16[200000] y)", "ReduceSum", "row_resident",
     1},
    {"few_halves", "(float16[200000, 6] x) => (float16[200000] y)", "ReduceSum", "row_resident", 2},
    {"halves", "(float16[200000, 24] x) => (float16[200000] y)", "ReduceSum", "row_resident", 8},
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
    for (const auto& [name, value] : generated.kernels[0].config) {
      if (name == "width" && GetParam().width > 0) EXPECT_EQ(value, GetParam().width);
    }
    if (Compiler::find()) expect_compiles(generated.kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ShortRows, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen_tests
