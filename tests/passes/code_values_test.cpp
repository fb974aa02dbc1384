// Maxima of dequantised values, and values that are quantised again as they were.
#include <gtest/gtest.h>

#include "passes/integers/maxima_of_codes.h"
#include "passes/integers/moved_codes.h"
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

class MovedCodes : public CodeValues {
 protected:
  ir::ValueId quantised(ir::ValueId floats, double scale = 0.05) {
    return b.node("QuantizeLinear", {floats, number(scale), zero(DType::UInt8, 7)});
  }
  ir::ValueId values(const Dims& dims = {2, 3, 8, 9}) { return b.node("Exp", {input(dims)}); }
  bool moves() { return run_pass(passes::moved_codes, b.graph); }
};

TEST_F(MovedCodes, AreOfWhatIsMoved) {
  const ir::ValueId turned = b.node("Transpose", {values()}, {{"perm", Sizes{1, 0, 3, 2}}});
  named_output(quantised(turned), "y");
  EXPECT_TRUE(moves());
  EXPECT_EQ(operators(b.graph), (Ops{"Exp", "QuantizeLinear", "Transpose"}));
  b = GraphBuilder();
  const ir::ValueId joined =
      b.node("Concat", {values(), dequantised(codes(), 0.07), values()}, {{"axis", int64_t{1}}});
  named_output(quantised(joined), "y");
  EXPECT_TRUE(moves());
  EXPECT_EQ(operators(b.graph).back(), "Concat");
  b = GraphBuilder();
  const ir::ValueId scales = b.constant(make_tensor<double>(DType::Float32, {4}, {1, 1, 2, 3}));
  const ir::ValueId larger =
      b.node("Resize", {values(), ir::kAbsent, scales}, {{"mode", std::string("nearest")}});
  named_output(quantised(larger), "y");
  EXPECT_TRUE(moves());
  EXPECT_EQ(operators(b.graph), (Ops{"Exp", "QuantizeLinear", "Resize"}));
}

// Behind several moves the codes of the source come back.
TEST_F(MovedCodes, OfTheSameScaleAreTheSource) {
  const ir::ValueId turned =
      b.node("Transpose", {dequantised(codes(), 0.05, 7)}, {{"perm", Sizes{1, 0, 3, 2}}});
  const ir::ValueId sizes = b.constant(make_tensor<int64_t>(DType::Int64, {2}, {6, 72}));
  b.output(quantised(b.node("Reshape", {turned, sizes})));
  EXPECT_TRUE(moves());
  EXPECT_TRUE(run_pass(passes::same_codes, b.graph));
  EXPECT_EQ(operators(b.graph),
            (Ops{"QuantizeLinear", "DequantizeLinear", "Transpose", "Reshape"}));
}

TEST_F(MovedCodes, OthersStay) {
  const ir::Attributes turn = {{"perm", Sizes{1, 0, 3, 2}}};
  // Of an input of the graph, and of elements of which others are dropped.
  b.output(quantised(b.node("Transpose", {input({2, 3, 8, 9})}, turn)));
  EXPECT_FALSE(moves());
  b = GraphBuilder();
  const auto integers = [&](int64_t x) {
    return b.constant(make_tensor<int64_t>(DType::Int64, {1}, {x}));
  };
  b.output(quantised(b.node("Slice", {values(), integers(0), integers(4), integers(3)})));
  EXPECT_FALSE(moves());
  // The floats have another reader, are an output, or are computed.
  b = GraphBuilder();
  const ir::ValueId turned = b.node("Transpose", {values()}, turn);
  b.output(quantised(turned));
  b.output(b.node("Neg", {turned}));
  EXPECT_FALSE(moves());
  b = GraphBuilder();
  b.output(quantised(named_output(b.node("Transpose", {values()}, turn), "moved")));
  EXPECT_FALSE(moves());
  b = GraphBuilder();
  b.output(quantised(b.node("Add", {values(), values()})));
  EXPECT_FALSE(moves());
  // A scale of each channel.
  b = GraphBuilder();
  const ir::ValueId scales = b.constant(make_tensor<double>(DType::Float32, {3}, {1, 2, 3}));
  const ir::ValueId zeros = b.constant(make_tensor<int64_t>(DType::UInt8, {3}, {1, 2, 3}));
  b.output(b.node("QuantizeLinear", {b.node("Transpose", {values()}, turn), scales, zeros},
                  {{"axis", int64_t{0}}}));
  EXPECT_FALSE(moves());
}

}  // namespace
}  // namespace redfuser::testing
