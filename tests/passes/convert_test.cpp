// Conversion to 16-bit floats: values that stay fp32, and the accuracy of the result.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "onnx/import/import.h"
#include "passes/pipeline.h"
#include "passes/precision/convert_floats.h"
#include "redfuser/convert.h"
#include "redfuser/error.h"

namespace redfuser {
namespace {

std::string with_opset(int opset, const std::string& graph) {
  return fmt::format("<ir_version: 9, opset_import: [\"\" : {}]> {}", opset, graph);
}

ConvertedModel converted(const std::string& graph, ConvertOptions options = {}, int opset = 20) {
  return convert(Model::parse(with_opset(opset, graph)), options);
}

// The dtypes of named values.
std::map<std::string, DType> types_of(const Model& model) {
  std::map<std::string, DType> types;
  for (const ir::Value& value : model.handle()->graph.values) types[value.name] = value.dtype;
  return types;
}

struct Case {
  const char* name;
  const char* graph;
  std::vector<std::string> narrow, wide;  // values
};

const Case kCases[] = {
    {"products_and_residuals",
     "g (float[n,4] x, float[n,4] r) => (float[n,4] y)"
     "<float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {"
     "  p = MatMul(x, w) a = Relu(p) q = MatMul(a, w) y = Add(q, r) }",
     {"x", "r", "w", "p", "a", "q", "y"},
     {}},
    {"softmax",
     "g (float[n,4] x) => (float[n,4] y)<float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {"
     "  s = MatMul(x, w) a = Constant<value = int64[1] {-1}>() m = ReduceMax(s, a) d = Sub(s, m)"
     "  e = Exp(d) z = ReduceSum(e, a) p = Div(e, z) y = MatMul(p, w) }",
     {"s", "w", "y"},
     {"m", "d", "e", "z", "p"}},
    {"root_mean_square_squares_in_fp32",
     "g (float[n,4] x) => (float[n,4] y)<float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {"
     "  h = MatMul(x, w) a = Constant<value = int64[1] {-1}>() q = Mul(h, h)"
     "  v = ReduceMean(q, a) e = Constant<value = float {1e-12}>() t = Add(v, e) r = Sqrt(t)"
     "  n = Div(h, r) y = MatMul(n, w) }",
     {"h", "y"},
     {"q", "v", "t", "r", "n"}},
    {"a_normalised_row_is_rounded_once_for_all_its_readers",
     "g (float[n,4] x) => (float[n,4] y)<float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> {"
     "  a = Constant<value = int64[1] {-1}>() m = ReduceMean(x, a) d = Sub(x, m)"
     "  h = MatMul(d, w) y = Add(h, d) }",
     {"h", "y"},
     {"m", "d"}},
    {"positions_stay_exact",
     "g (int64[n] i, float[n,4] x) => (float[n,4] y)<float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,"
     "6,7}, float[1,4] f = {1, 0.1, 0.01, 0.001}> { two = Constant<value = int64[1] {1}>()"
     "  c = Cast<to = 1>(i) u = Unsqueeze(c, two) t = MatMul(u, f) s = Sin(t) h = MatMul(x, w)"
     "  r = Mul(h, s) y = MatMul(r, w) }",
     {"h", "w", "y"},
     {"c", "u", "t", "s", "r", "f"}},
    {"scatters_move_or_add",
     "g (float[4,4] x, int64[1,1] i, float[1,4] u) => (float[4,4] y, float[4,4] z)"
     "<float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> { h = MatMul(x, w)"
     "  y = ScatterND(h, i, u) t = ScatterND<reduction = \"add\">(h, i, u) z = MatMul(t, w) }",
     {"h", "y", "z"},
     {"t"}},
    {"a_mask_that_overflows_is_added_in_fp32",
     "g (float[n,4] x, bool[n,4] k) => (float[n,4] y)<float[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,"
     "5,6,7}> { s = MatMul(x, w) f = Constant<value = float {-3.4028235e38}>()"
     "  t = Where(k, s, f) y = Softmax<axis = -1>(t) }",
     {"s", "w", "y"},
     {"t"}},
};

class Convert : public testing::TestWithParam<Case> {};

TEST_P(Convert, DecidesEveryValue) {
  for (const DType to : {DType::Float16, DType::BFloat16}) {
    const ConvertedModel result = converted(GetParam().graph, {to});
    const std::map<std::string, DType> types = types_of(result.model);
    for (const std::string& name : GetParam().narrow) EXPECT_EQ(types.at(name), to) << name;
    for (const std::string& name : GetParam().wide) {
      EXPECT_EQ(types.at(name), DType::Float32) << name;
    }
    for (const ValueInfo& output : result.model.outputs()) EXPECT_EQ(output.dtype, to);
  }
}

TEST_P(Convert, ASecondRunChangesNothing) {
  const ConvertedModel once = converted(GetParam().graph);
  const ConvertedModel twice = convert(once.model, {});
  EXPECT_EQ(to_string(once.model.handle()->graph), to_string(twice.model.handle()->graph));
}

TEST_P(Convert, KeepsInputsAndOutputs) {
  const Model model = converted(GetParam().graph, {DType::Float16, true}).model;
  for (const ValueInfo& output : model.outputs()) EXPECT_EQ(output.dtype, DType::Float32);
  EXPECT_EQ(types_of(model).at("x"), DType::Float32);
}

INSTANTIATE_TEST_SUITE_P(Cases, Convert, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Convert, ReportsConstantsThatOverflow) {
  const ConvertedModel result = converted(
      "g (float[n,2] x) => (float[n,2] y)<float[2,2] big = {1, -70000, 2, 3.5},"
      " float[2,2] w = {1,2,3,4}> { h = MatMul(x, w) y = MatMul(h, big) }");
  ASSERT_EQ(result.overflowing.size(), 1u);
  EXPECT_EQ(result.overflowing[0].name, "big");
  EXPECT_EQ(result.overflowing[0].largest, 70000);
  EXPECT_EQ(result.overflowing[0].elements, 4);
  const auto types = types_of(result.model);
  EXPECT_EQ(types.at("big"), DType::Float32);
  EXPECT_EQ(types.at("w"), DType::Float16);
  EXPECT_EQ(types.at("h"), DType::Float16);
  const Model bf16 = converted(
                         "g (float[n,2] x) => (float[n,2] y)<float[2,2] big = {1, -70000, 2, 3.5}> "
                         "{ y = MatMul(x, big) }",
                         {DType::BFloat16})
                         .model;
  EXPECT_EQ(types_of(bf16).at("big"), DType::BFloat16);
}

// Rows that two masks of the lowest float hide wholly are uniform, as in fp32.
TEST(Convert, HiddenRowsAreNotNaN) {
  const char* graph =
      "g (float[n,2] x, bool[n,2] k) => (float[n,2] y) {"
      "  z = Constant<value = float {0}>() f = Constant<value = float {-65504}>()"
      "  a = Where(k, z, f) s = Add(x, a) y = Softmax<axis = -1>(s) }";
  const Model model = converted(graph).model;
  Tensor x(DType::Float16, {1, 2}), k(DType::Bool, {1, 2});
  x.as<uint16_t>()[0] = x.as<uint16_t>()[1] = 0xd640;  // -100
  k.as<bool>()[0] = k.as<bool>()[1] = false;
  Session session(compile(model));
  const Tensor y = cast_floats(session.run({{"x", x}, {"k", k}}).at("y"), DType::Float32);
  EXPECT_EQ(y.as<float>()[0], 0.5f);
  EXPECT_EQ(y.as<float>()[1], 0.5f);
}

TEST(Convert, RefusesOtherTypesAndOldOpsets) {
  const char* graph = "g (float[n] x) => (float[n] y) { y = Relu(x) }";
  EXPECT_THROW(converted(graph, {DType::Float64}), UserError);
  EXPECT_THROW(converted(graph, {DType::BFloat16}, 12), UserError);
  EXPECT_EQ(converted(graph, {}, 12).model.outputs()[0].dtype, DType::Float16);
}

TEST(Convert, LeavesOtherFloatsAlone) {
  const Model model = converted(
                          "g (double[n] x, int64[n] i) => (double[n] y, int64[n] j) "
                          "{ y = Exp(x) j = Neg(i) }")
                          .model;
  EXPECT_EQ(model.outputs()[0].dtype, DType::Float64);
  EXPECT_EQ(model.outputs()[1].dtype, DType::Int64);
}

TEST(CastFloats, RoundsToNearestEven) {
  Tensor x(DType::Float32, {3});
  x.as<float>()[0] = 1 + 0x1p-11f, x.as<float>()[1] = 70000, x.as<float>()[2] = NAN;
  const Tensor back = cast_floats(cast_floats(x, DType::Float16), DType::Float32);
  EXPECT_EQ(back.as<float>()[0], 1);
  EXPECT_EQ(back.as<float>()[1], INFINITY);
  EXPECT_TRUE(std::isnan(back.as<float>()[2]));
  EXPECT_THROW(cast_floats(x, DType::Int32), UserError);
}

}  // namespace
}  // namespace redfuser
