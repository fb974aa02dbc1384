// Reductions of rows of few elements: a thread for each result, or lanes that share a row.
#include <fmt/format.h>

#include "support/codegen_harness.h"

namespace redfuser::codegen_tests {
namespace {

struct Case {
  const char* name;
  const char *graph, *reduction;  // over axis 1
  const char* family;
};

const Case kCases[] = {
    {"few_floats", "(float[200000, 31] x) => (float[200000] y)", "ReduceMax", "reduce"},
    {"floats", "(float[200000, 32] x) => (float[200000] y)", "ReduceMax", "row_resident"},
    {"odd_rows", "(float[200000, 33] x) => (float[200000] y)", "ReduceSum", "row_resident"},
    {"few_halves", "(float16[200000, 24] x) => (float16[200000] y)", "ReduceSum", "reduce"},
    {"halves", "(float16[200000, 32] x) => (float16[200000] y)", "ReduceSum", "row_resident"},
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
    ASSERT_EQ(generated.kernels.size(), 1u);
    EXPECT_EQ(generated.kernels[0].family, GetParam().family);
    if (Compiler::find()) expect_compiles(generated.kernels, target.architecture);
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, ShortRows, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace redfuser::codegen_tests
