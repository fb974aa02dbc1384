// Constant operands of products of 8-bit floats.
#include "passes/passes.h"
#include "support/pass_case.h"

namespace redfuser::testing {
namespace {

constexpr int64_t kDepth = 64;

class AlignCodes : public Passes {
 protected:
  ir::ValueId cast(ir::ValueId x, DType dtype) {
    return b.node("Cast", {x}, {{"to", static_cast<int64_t>(dtype)}});
  }
  // Rows of codes 0, 1, 2, ..., which are positive numbers.
  ir::ValueId codes(int64_t rows, int64_t columns) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < rows * columns; ++i) all.push_back(i % 120);
    return b.constant(make_tensor(DType::Float8E4M3FN, {rows, columns}, all));
  }
  // x, rounded to 8 bits or not, times the values of w.
  void product(ir::ValueId w, bool rounded) {
    ir::ValueId x = input({-1, kDepth});
    if (rounded) x = cast(cast(x, DType::Float8E4M3FN), DType::Float32);
    named_output(b.node("MatMul", {x, cast(w, DType::Float32)}), "y");
  }
};

TEST_F(AlignCodes, WeightsLieAlongTheSum) {
  product(codes(kDepth, 3), true);
  EXPECT_TRUE(run_pass(passes::align_codes, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"Transpose", "Cast", "Cast", "Cast", "MatMul"}));
  const Tensor& weights = b.graph.values[b.graph.nodes[0].inputs[0]].constant;
  ASSERT_EQ(weights.dims(), (Dims{3, kDepth}));
  const std::vector<double> values = values_of(weights);
  for (int64_t k = 0; k < kDepth; ++k) {
    for (int64_t n = 0; n < 3; ++n) {
      EXPECT_EQ(values[static_cast<size_t>(n * kDepth + k)], (k * 3 + n) % 120);
    }
  }
}

TEST_F(AlignCodes, ThoseOfProductsOfFloatsStay) {
  product(codes(kDepth, 3), false);
  EXPECT_FALSE(run_pass(passes::align_codes, b.graph));
}

// A product takes the codes, which a constant of floats would hide.
TEST_F(AlignCodes, FoldingKeepsTheCodesOfProducts) {
  product(codes(kDepth, 3), true);
  EXPECT_FALSE(run_pass(passes::fold_constants, b.graph));
}

TEST_F(AlignCodes, FoldingUnpacksOtherCodes) {
  product(codes(kDepth, 3), false);
  EXPECT_TRUE(run_pass(passes::fold_constants, b.graph));
  EXPECT_EQ(operators(b.graph), (Ops{"MatMul"}));
}

}  // namespace
}  // namespace redfuser::testing
