#include "support/ops_case.h"

namespace redfuser::testing {
namespace {

const float kFloatNaN = std::numeric_limits<float>::quiet_NaN();
const float kFloatInf = std::numeric_limits<float>::infinity();

std::vector<OpCase> cases() {
  const Tensor a = floats({2, 3}, {1, -2, 3, -4, 5, 6});
  const Tensor row = floats({3}, {2, 4, -1});
  const Tensor x = floats({3}, {-2, 0, 2});
  const Tensor whole = integers({4}, {7, -7, 7, -7}), divisor = integers({4}, {2, 2, -2, -2});
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const Tensor largest = integers({}, {kLargest}), minus_two = integers({}, {-2});
  return {
      {"add_broadcast", "Add", 14, {a, row}, {}, {}, {2, 3}, {3, 2, 2, -2, 9, 5}},
      {"add_wraps_around", "Add", 14, {largest, largest}, {0, 1}, {}, {}, {-2}},
      {"sub_wraps_around", "Sub", 14, {minus_two, largest}, {0, 1}, {}, {}, {double(kLargest)}},
      {"mul_wraps_around", "Mul", 14, {largest, largest}, {0, 1}, {}, {}, {1}},
      {"div_integer_truncates", "Div", 14, {whole, divisor}, {}, {}, {4}, {3, -3, -3, 3}},
      {"mod_follows_divisor", "Mod", 13, {whole, divisor}, {}, {}, {4}, {1, 1, -1, -1}},
      {"mod_fmod_follows_dividend",
       "Mod",
       13,
       {whole, divisor},
       {},
       {{"fmod", int64_t{1}}},
       {4},
       {1, -1, 1, -1}},
      {"pow_square", "Pow", 15, {x, floats({}, {2})}, {1}, {}, {3}, {4, 0, 4}},
      {"pow_cube", "Pow", 15, {x, floats({}, {3})}, {1}, {}, {3}, {-8, 0, 8}},
      {"pow_integer_exponent", "Pow", 15, {x, integers({3}, {1, 2, 4})}, {}, {}, {3}, {-2, 0, 16}},
      {"pow_integer_base",
       "Pow",
       15,
       {integers({2}, {4, 9}), floats({2}, {0.5, 1.5})},
       {},
       {},
       {2},
       {2, 27}},
      {"max_three_with_nan",
       "Max",
       13,
       {floats({3}, {1, kFloatNaN, 0}), floats({3}, {2, 0, 0}), floats({1}, {1})},
       {},
       {},
       {3},
       {2, kNaN, 1}},
      {"mean_two", "Mean", 13, {floats({2}, {1, 3}), floats({2}, {3, 5})}, {}, {}, {2}, {2, 4}},
      {"sum_one", "Sum", 13, {x}, {}, {}, {3}, {-2, 0, 2}},
      {"clip_attributes",
       "Clip",
       6,
       {a},
       {},
       {{"min", -1.0f}, {"max", 4.0f}},
       {2, 3},
       {1, -1, 3, -1, 4, 4}},
      {"clip_inputs",
       "Clip",
       13,
       {a, Tensor(), floats({}, {4})},
       {2},
       {},
       {2, 3},
       {1, -2, 3, -4, 4, 4}},
      {"shift_right",
       "BitShift",
       11,
       {make_tensor<int64_t>(DType::UInt8, {2}, {16, 5}),
        make_tensor<int64_t>(DType::UInt8, {2}, {2, 1})},
       {},
       {{"direction", std::string("RIGHT")}},
       {2},
       {4, 2}},
      {"bitwise_and",
       "BitwiseAnd",
       18,
       {integers({2}, {6, 12}), integers({2}, {3, 10})},
       {},
       {},
       {2},
       {2, 8}},
      {"greater", "Greater", 13, {a, row}, {}, {}, {2, 3}, {0, 0, 1, 0, 1, 1}},
      {"greater_equal_nan",
       "GreaterOrEqual",
       16,
       {floats({2}, {kFloatNaN, 1}), floats({1}, {1})},
       {},
       {},
       {2},
       {0, 1}},
      {"where",
       "Where",
       16,
       {booleans({3}, {1, 0, 1}), a, floats({}, {9})},
       {},
       {},
       {2, 3},
       {1, 9, 3, -4, 9, 6}},
      {"is_inf_positive",
       "IsInf",
       20,
       {floats({3}, {kFloatInf, -kFloatInf, 1})},
       {},
       {{"detect_negative", int64_t{0}}},
       {3},
       {1, 0, 0}},
      {"xor", "Xor", 7, {booleans({2}, {1, 1}), booleans({2}, {0, 1})}, {}, {}, {2}, {1, 0}},
      {"cast_to_integer",
       "Cast",
       13,
       {floats({3}, {1.9f, -1.9f, 0})},
       {},
       {{"to", int64_t{7}}},
       {3},
       {1, -1, 0}},
      {"cast_to_bool",
       "Cast",
       13,
       {floats({3}, {0.5f, 0, -2})},
       {},
       {{"to", int64_t{9}}},
       {3},
       {1, 0, 1}},
      {"cast_like",
       "CastLike",
       19,
       {floats({2}, {2.5f, -1}), integers({1}, {0})},
       {},
       {},
       {2},
       {2, -1}},
      {"round_half_to_even",
       "Round",
       11,
       {floats({4}, {0.5f, 1.5f, 2.5f, -0.5f})},
       {},
       {},
       {4},
       {0, 2, 2, 0}},
      {"relu_nan", "Relu", 14, {floats({2}, {-1, kFloatNaN})}, {}, {}, {2}, {0, kNaN}},
      {"sigmoid_saturates",
       "Sigmoid",
       13,
       {floats({3}, {-1000, 0, 1000})},
       {},
       {},
       {3},
       {0, 0.5, 1}},
      {"softplus_large",
       "Softplus",
       1,
       {floats({3}, {-1000, 0, 1000})},
       {},
       {},
       {3},
       {0, std::log(2.0), 1000}},
      {"leaky_relu", "LeakyRelu", 16, {x}, {}, {{"alpha", 0.5f}}, {3}, {-1, 0, 2}},
      {"prelu", "PRelu", 16, {x, floats({1}, {0.25f})}, {}, {}, {3}, {-0.5, 0, 2}},
      {"elu", "Elu", 6, {x}, {}, {}, {3}, {std::exp(-2.0) - 1, 0, 2}},
      {"hard_sigmoid",
       "HardSigmoid",
       6,
       {floats({3}, {-9, 1, 9})},
       {},
       {{"alpha", 0.25f}},
       {3},
       {0, 0.75, 1}},
      {"hard_swish", "HardSwish", 14, {floats({3}, {-4, 3, 0})}, {}, {}, {3}, {0, 3, 0}},
      {"thresholded_relu",
       "ThresholdedRelu",
       10,
       {floats({3}, {1, 1.5f, -2})},
       {},
       {},
       {3},
       {0, 1.5, 0}},
      {"softsign", "Softsign", 1, {x}, {}, {}, {3}, {-2.0 / 3, 0, 2.0 / 3}},
      {"erf", "Erf", 13, {x}, {}, {}, {3}, {std::erf(-2.0), 0, std::erf(2.0)}},
      {"dropout_mask", "Dropout", 13, {x}, {}, {}, {3}, {1, 1, 1}, 1, 2},
      {"quantize",
       "QuantizeLinear",
       13,
       {floats({4}, {0, 2.5f, -300, 1000}), floats({}, {2}),
        make_tensor<int64_t>(DType::UInt8, {}, {128})},
       {},
       {},
       {4},
       {128, 129, 0, 255}},
      {"dequantize_axis",
       "DequantizeLinear",
       13,
       {make_tensor<int64_t>(DType::Int8, {2, 2}, {1, 2, 3, 4}), floats({2}, {2, 10}),
        make_tensor<int64_t>(DType::Int8, {2}, {0, 1})},
       {},
       {{"axis", int64_t{1}}},
       {2, 2},
       {2, 10, 6, 30}},
  };
}

class OpsElementwise : public ::testing::TestWithParam<OpCase> {};
TEST_P(OpsElementwise, StaticShapes) { check(GetParam(), false); }
INSTANTIATE_TEST_SUITE_P(All, OpsElementwise, ::testing::ValuesIn(cases()), case_name);

TEST(OpsElementwise, BroadcastsOpenSizes) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {-1, 4, -2});
  const ir::ValueId y = b.input("y", DType::Float32, {4, -3});
  const ir::ValueId sum = b.node("Add", {x, y});
  Reference same(b.graph), one(b.graph);
  same.feed(x, floats({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  same.feed(y, floats({4, 2}, {10, 20, 30, 40, 50, 60, 70, 80}));
  EXPECT_EQ(same.dims(sum), (Dims{1, 4, 2}));
  EXPECT_EQ(same.elements(sum), (std::vector<double>{11, 22, 33, 44, 55, 66, 77, 88}));
  one.feed(x, floats({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  one.feed(y, floats({4, 1}, {10, 20, 30, 40}));
  EXPECT_EQ(one.dims(sum), (Dims{1, 4, 2}));
  EXPECT_EQ(one.elements(sum), (std::vector<double>{11, 12, 23, 24, 35, 36, 47, 48}));
}

TEST(OpsElementwise, NamesTheNodeInErrors) {
  GraphBuilder b;
  const ir::ValueId x = b.input("x", DType::Float32, {2, 3}), y = b.input("y", DType::Float32, {4});
  try {
    b.node("Add", {x, y});
    FAIL() << "no error";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "[Add] node \"Add_0\": shapes [2,3] and [4] do not broadcast");
  }
  EXPECT_THROW(b.node("And", {x, x}), UserError);
  EXPECT_THROW(b.node("Cast", {x}, {{"to", int64_t{14}}}), UserError);
}

}  // namespace
}  // namespace redfuser::testing
