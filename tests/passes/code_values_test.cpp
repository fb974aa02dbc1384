// Maxima of dequantised values, and values that are quantised again as they were.
#include <gtest/gtest.h>

#include "passes/integers/maxima_of_codes.h"
#include "passes/integers/same_codes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

class CodeValues : public Passes {
 protected:
  ir::ValueId number(double x) { return b.constant(make_tensor<double>(DType::Float32, {}, {x})); }
  ir::ValueId zero(DType dtype, int64_t x) {
    return b.constant(make_tensor<int64_t>(dtype, {}, {x}));
  }
  ir::ValueId codes(DType dtype = DType::UInt8, int64_t at = 120) {
    return b.node("QuantizeLinear", {input({2, 3, 8, 9}), number(0.03), zero(dtype, at)});
  }
  ir::ValueId dequantised(ir::ValueId codes, double scale, int64_t at = 120) {
    const DType dtype = b.graph.values[static_cast<size_t>(codes)].dtype;
    return b.node("DequantizeLinear", {codes, number(scale), zero(dtype, at)});
  }
  DType type_of_pool() {
    for (const ir::Node& node : b.graph.nodes) {
      if (node.op == "MaxPool") {
        return b.graph.values[static_cast<size_t>(node.inputs[0])].dtype;
      }
    }
    return DType::Undefined;
  }
  // Of a pool of values times `scale`.
  bool moves(const ir::Attributes& attributes, double scale = 0.03, bool twice = false) {
    b = GraphBuilder();
    const ir::ValueId x = dequantised(codes(), scale);
    const ir::ValueId y = b.node("MaxPool", {x}, attributes);
    b.output(b.node("Neg", {y}));
    if (twice) b.output(b.node("Neg", {x}));
    return run_pass(passes::maxima_of_codes, b.graph);
  }
};

using Sizes = std::vector<int64_t>;

TEST_F(CodeValues, MaximaAreOfCodes) {
  const ir::Attributes window = {
      {"kernel_shape", Sizes{3, 3}}, {"strides", Sizes{2, 2}}, {"pads", Sizes{1, 1, 1, 1}}};
  for (const bool twice : {false, true}) {
    EXPECT_TRUE(moves(window, 0.03, twice));
    EXPECT_EQ(type_of_pool(), DType::UInt8) << to_string(b.graph);
  }
  b = GraphBuilder();
  const ir::ValueId x = dequantised(codes(DType::Int8, -5), 0.25, -5);
  named_output(b.node("MaxPool", {x}, window), "y");
  EXPECT_TRUE(run_pass(passes::maxima_of_codes, b.graph));
  EXPECT_EQ(type_of_pool(), DType::Int8);
}

// Of scales that reverse the order or make all values one, and windows that may be empty.
TEST_F(CodeValues, OtherMaximaStay) {
  const ir::Attributes window = {{"kernel_shape", Sizes{2, 2}}};
  EXPECT_FALSE(moves(window, -0.03));
  EXPECT_FALSE(moves(window, 0));
  ir::Attributes dilated = window, up = window, padded = window;
  dilated["dilations"] = Sizes{2, 2};
  up["ceil_mode"] = int64_t{1};
  padded["pads"] = Sizes{2, 2, 2, 2};
  EXPECT_FALSE(moves(dilated));
  EXPECT_FALSE(moves(up));
  EXPECT_FALSE(moves(padded));
  EXPECT_EQ(type_of_pool(), DType::Float32);
  b = GraphBuilder();
  b.output(b.node("MaxPool", {input({1, 2, 4, 4})}, window));
  EXPECT_FALSE(run_pass(passes::maxima_of_codes, b.graph));
}

TEST_F(CodeValues, TheSameScaleAndZeroPointGiveTheCodes) {
  const ir::ValueId q = codes();
  const ir::ValueId again =
      b.node("QuantizeLinear", {dequantised(q, 0.07), number(0.07), zero(DType::UInt8, 120)});
  b.output(b.node("DequantizeLinear", {again, number(0.5)}));
  EXPECT_TRUE(run_pass(passes::same_codes, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"QuantizeLinear", "DequantizeLinear", "DequantizeLinear"}));
}

TEST_F(CodeValues, OtherQuantisationsStay) {
  struct {
    double scale;
    DType dtype;
    int64_t zero;
  } const others[] = {{0.071, DType::UInt8, 120},
                      {0.07, DType::UInt8, 121},
                      {0.07, DType::Int8, -8},
                      {-0.07, DType::UInt8, 120}};
  for (const auto& other : others) {
    b = GraphBuilder();
    b.output(b.node("QuantizeLinear", {dequantised(codes(), 0.07), number(other.scale),
                                       zero(other.dtype, other.zero)}));
    EXPECT_FALSE(run_pass(passes::same_codes, b.graph)) << other.scale << " " << other.zero;
  }
  // Not at its own place.
  b = GraphBuilder();
  const ir::ValueId moved =
      b.node("Transpose", {dequantised(codes(), 0.07)}, {{"perm", Sizes{1, 0, 2, 3}}});
  b.output(b.node("QuantizeLinear", {moved, number(0.07), zero(DType::UInt8, 120)}));
  EXPECT_FALSE(run_pass(passes::same_codes, b.graph));
}

}  // namespace
}  // namespace redfuser::testing
