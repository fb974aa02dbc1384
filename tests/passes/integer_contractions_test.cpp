// Convolutions and products of dequantised values as sums of integers.
#include "passes/integers/integer_contractions.h"

#include <gtest/gtest.h>

#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

using Numbers = std::vector<int64_t>;

class IntegerContractions : public Passes {
 protected:
  ir::ValueId number(double x) { return b.constant(make_tensor<double>(DType::Float32, {}, {x})); }
  Tensor bytes(DType dtype, const Dims& dims, int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    std::vector<int64_t> all(static_cast<size_t>(element_count(dims)));
    const int low = dtype == DType::Int8 ? -128 : 0;
    for (int64_t& x : all) x = std::uniform_int_distribution<int>(low, low + 255)(random);
    return make_tensor(dtype, dims, all);
  }
  // A value of bytes, by QuantizeLinear.
  ir::ValueId codes(DType dtype, int64_t zero, const Dims& dims) {
    zero_ = b.constant(make_tensor<int64_t>(dtype, {}, {zero}));
    return b.node("QuantizeLinear", {input(dims), number(0.02), zero_});
  }
  ir::ValueId dequantised(DType dtype, int64_t zero, const Dims& dims) {
    const ir::ValueId q = codes(dtype, zero, dims);
    return b.node("DequantizeLinear", {q, number(0.02), zero_});
  }
  ir::ValueId weights(DType dtype, const Dims& dims, int64_t zero = 0, int64_t axis = 0) {
    const int64_t lines = dims[static_cast<size_t>(axis)];
    std::vector<double> scales;
    for (int64_t i = 0; i < lines; ++i) scales.push_back(0.001 * static_cast<double>(1 + i % 5));
    const ir::ValueId scale = b.constant(make_tensor(DType::Float32, {lines}, scales));
    const ir::ValueId zeros =
        b.constant(make_tensor(dtype, {lines}, Numbers(static_cast<size_t>(lines), zero)));
    return b.node("DequantizeLinear", {b.constant(bytes(dtype, dims, 7)), scale, zeros},
                  {{"axis", axis}});
  }
  ir::ValueId bias(int64_t filters) {
    const ir::ValueId q = b.constant(
        make_tensor(DType::Int32, {filters}, Numbers(static_cast<size_t>(filters), 3000)));
    return b.node("DequantizeLinear", {q, number(0.0001)});
  }
  bool rewrite(ir::ValueId y) {
    b.output(b.node("Neg", {y}));
    passes::fold_constants(b.graph);
    return run_pass(passes::integer_contractions, b.graph);
  }
  bool has(const std::string& op) {
    const Ops all = operators(b.graph);
    return std::find(all.begin(), all.end(), op) != all.end();
  }
  const ir::Attributes same_ = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};

 private:
  ir::ValueId zero_ = ir::kAbsent;
};

TEST_F(IntegerContractions, ConvolutionsOfEachType) {
  for (const DType left : {DType::UInt8, DType::Int8}) {
    for (const DType right : {DType::UInt8, DType::Int8}) {
      b = GraphBuilder();
      const ir::ValueId x = dequantised(left, left == DType::Int8 ? -3 : 120, {2, 64, 20, 20});
      const ir::ValueId w = weights(right, {64, 64, 3, 3}, right == DType::Int8 ? 0 : 117);
      EXPECT_TRUE(rewrite(b.node("Conv", {x, w, bias(64)}, same_)));
      EXPECT_TRUE(has("ConvInteger")) << to_string(b.graph);
      EXPECT_FALSE(has("Conv"));
    }
  }
}

TEST_F(IntegerContractions, ChannelByChannel) {
  ir::Attributes attributes = same_;
  attributes["group"] = int64_t{96};
  const ir::ValueId x = dequantised(DType::UInt8, 0, {1, 96, 28, 28});
  const ir::ValueId y =
      b.node("Conv", {x, weights(DType::Int8, {96, 1, 3, 3}), bias(96)}, attributes);
  rewrite(y);  // an estimate decides
}

TEST_F(IntegerContractions, Products) {
  for (const bool by_rows : {false, true}) {
    b = GraphBuilder();
    const ir::ValueId x = dequantised(DType::UInt8, 130, {64, 256});
    const ir::ValueId w =
        weights(DType::Int8, by_rows ? Dims{200, 256} : Dims{256, 200}, 0, by_rows ? 0 : 1);
    const ir::ValueId y =
        by_rows ? b.node("Gemm", {x, w, bias(200)}, {{"transB", int64_t{1}}, {"alpha", 0.5f}})
                : b.node("MatMul", {x, w});
    EXPECT_TRUE(rewrite(y));
    EXPECT_TRUE(has("MatMulInteger")) << to_string(b.graph);
  }
}

// One scale of all weights is one of each line, along either axis.
TEST_F(IntegerContractions, ProductsOfOneScale) {
  for (const DType dtype : {DType::Int8, DType::UInt8}) {
    for (const bool by_rows : {false, true}) {
      b = GraphBuilder();
      const ir::ValueId x = dequantised(DType::UInt8, 130, {64, 256});
      const Tensor codes = bytes(dtype, by_rows ? Dims{200, 256} : Dims{256, 200}, 3);
      const ir::ValueId zero =
          b.constant(make_tensor<int64_t>(dtype, {}, {dtype == DType::Int8 ? 0 : 119}));
      const ir::ValueId w = b.node("DequantizeLinear", {b.constant(codes), number(0.003), zero});
      EXPECT_TRUE(rewrite(b.node("Gemm", {x, w}, {{"transB", int64_t{by_rows}}})));
      EXPECT_TRUE(has("MatMulInteger")) << to_string(b.graph);
    }
  }
}

TEST_F(IntegerContractions, OthersStay) {
  const ir::ValueId w = weights(DType::Int8, {64, 64, 3, 3});
  const ir::ValueId x = dequantised(DType::UInt8, 0, {2, 64, 20, 20});
  b.output(b.node("Conv", {input({2, 64, 20, 20}), w}, same_));  // floats
  b.output(b.node("Conv", {b.node("Sqrt", {x}), w}, same_));     // of a function of integers
  const ir::ValueId rows = dequantised(DType::UInt8, 0, {64, 256});
  // Scales along the sum.
  b.output(b.node("MatMul", {rows, weights(DType::Int8, {256, 200}, 0, 0)}));
  // Products of two values that a run decides.
  b.output(b.node("MatMul", {rows, b.node("Transpose", {rows})}));
  passes::fold_constants(b.graph);
  EXPECT_FALSE(run_pass(passes::integer_contractions, b.graph));
}

// 255 · 127 · 72000 is beyond 2^31.
TEST_F(IntegerContractions, SumsBeyond32BitsStay) {
  const Tensor largest = make_tensor(DType::Int8, {72000, 4}, Numbers(288000, 127));
  const ir::ValueId w = b.node("DequantizeLinear", {b.constant(largest), number(0.5)});
  EXPECT_FALSE(rewrite(b.node("MatMul", {dequantised(DType::UInt8, 0, {2, 72000}), w})));
}

}  // namespace
}  // namespace redfuser::testing
