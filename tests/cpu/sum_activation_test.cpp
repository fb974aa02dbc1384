// Which epilogues kernels compute in registers (activation_of).
#include "cpu/convolution/sum_activation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

namespace redfuser::cpu {
namespace {

constexpr ir::ValueId kResidual = 3, kOther = 4;

// Expressions over one product `c` and elements of two tensors at the product's place, and of the
// first one elsewhere.
class SumActivationTest : public testing::Test {
 protected:
  ir::Expr number(double value) { return pool.number(value, DType::Float32); }
  ir::Expr bounded(ir::Expr e, double low, double high) {
    return pool.make(ir::ExprOp::Min, {pool.make(ir::ExprOp::Max, {e, number(low)}), number(high)});
  }
  ir::Expr affine(ir::Expr e, double scale, double shift) {
    return pool.add(pool.mul(e, number(scale)), number(shift));
  }
  ir::Expr read(ir::ValueId value, const std::vector<ir::Expr>& at) {
    return pool.read(value, DType::Float32, at);
  }
  ir::Expr divisor(ir::Expr exponent) {
    return pool.add(number(1), pool.make(ir::ExprOp::Exp, {exponent}));
  }
  ir::Expr negated(ir::Expr e) { return pool.make(ir::ExprOp::Neg, {e}); }
  SumActivation of(ir::Expr body) {
    return activation_of(body, indices, [](ir::ValueId value) { return value == kResidual; });
  }

  ir::ExprPool pool;
  const std::vector<ir::Expr> indices{pool.axis("b", pool.integer(2)),
                                      pool.axis("m", pool.integer(5)),
                                      pool.axis("n", pool.integer(7))};
  const ir::Expr c = pool.leaf(ir::LeafKind::Product, 0, DType::Float32);
  const ir::Expr r = read(kResidual, indices);
  const ir::Expr other = read(kOther, indices);
  const ir::Expr elsewhere = read(kResidual, {indices[0], indices[2], indices[1]});
};

TEST_F(SumActivationTest, IsOfTheSumAlone) {
  const SumActivation relu6 = of(bounded(c, 0, 6));
  EXPECT_TRUE(relu6.each.any);
  EXPECT_FALSE(relu6.each.adds);
  EXPECT_EQ(relu6.residual, ir::kAbsent);
  EXPECT_EQ(relu6.each.low, 0);
  EXPECT_EQ(relu6.each.high, 6);
}

TEST_F(SumActivationTest, AddsAResidualOfTheSameLayout) {
  for (const ir::Expr sum : {pool.add(c, r), pool.add(r, c)}) {
    const SumActivation plain = of(sum);
    EXPECT_TRUE(plain.each.any && plain.each.adds);
    EXPECT_FALSE(plain.each.affine || plain.each.gates);
    EXPECT_EQ(plain.residual, kResidual);

    const SumActivation scaled = of(bounded(affine(sum, 0.5, 0.25), -1, 1));
    EXPECT_TRUE(scaled.each.adds && scaled.each.affine);
    EXPECT_EQ(scaled.each.scale, 0.5);
    EXPECT_EQ(scaled.each.shift, 0.25);
    EXPECT_EQ(scaled.each.low, -1);
    EXPECT_EQ(scaled.residual, kResidual);

    const SumActivation gate = of(pool.mul(sum, bounded(affine(sum, 0.25, 0.5), 0, 1)));
    EXPECT_TRUE(gate.each.adds && gate.each.gates);
    EXPECT_EQ(gate.residual, kResidual);
  }
}

TEST_F(SumActivationTest, IsLogistic) {
  const ir::Expr sum = pool.add(c, r);
  const SumActivation plain = of(pool.div(number(1), divisor(negated(affine(sum, 2, 0.5)))));
  EXPECT_TRUE(plain.each.logistic && plain.each.affine && plain.each.adds);
  EXPECT_FALSE(plain.each.gates);
  EXPECT_EQ(plain.each.scale, 2);
  EXPECT_EQ(plain.each.shift, 0.5);

  const SumActivation rising = of(pool.div(number(1), divisor(affine(c, 2, 0.5))));
  EXPECT_TRUE(rising.each.logistic && !rising.each.adds);
  EXPECT_EQ(rising.each.scale, -2);
  EXPECT_EQ(rising.each.shift, -0.5);

  for (const ir::Expr body : {pool.mul(sum, pool.div(number(1), divisor(negated(sum)))),
                              pool.div(sum, divisor(negated(sum)))}) {
    const SumActivation gate = of(body);
    EXPECT_TRUE(gate.each.logistic && gate.each.affine && gate.each.gates && gate.each.adds);
    EXPECT_EQ(gate.each.scale, 1);
    EXPECT_EQ(gate.residual, kResidual);
  }
}

TEST_F(SumActivationTest, RefusesOtherFunctions) {
  const ir::Expr sum = pool.add(c, r);
  const ir::Expr wide = pool.leaf(ir::LeafKind::Product, 0, DType::Float64);
  const ir::Expr wide_one = pool.number(1, DType::Float64);
  const ir::Expr refused[] = {
      pool.div(number(2), divisor(negated(c))),                 // twice it
      pool.div(number(1), pool.add(divisor(negated(c)), c)),    // another divisor
      pool.div(number(1), divisor(negated(bounded(c, 0, 1)))),  // of a bounded sum
      pool.div(sum, divisor(negated(c))),                       // of another sum
      pool.div(wide_one, pool.add(wide_one, pool.make(ir::ExprOp::Exp, {negated(wide)}))),
      pool.add(c, other),                    // another layout
      pool.add(c, elsewhere),                // another place
      pool.add(sum, r),                      // two residuals
      pool.mul(c, r),                        // a product
      pool.add(pool.mul(c, number(2)), r),   // the sum is scaled first
      pool.mul(sum, bounded(c, 0, 1)),       // a gate of another sum
      pool.add(c, c),                        // two of the sum
      pool.make(ir::ExprOp::Exp, {sum}),     // no bounded affine function
      bounded(pool.sub(c, r), 0, HUGE_VAL),  // a difference
  };
  for (size_t index = 0; index < std::size(refused); ++index) {
    const SumActivation found = of(refused[index]);
    EXPECT_FALSE(found.each.any || found.each.adds) << "body " << index;
    EXPECT_EQ(found.residual, ir::kAbsent);
  }
}

}  // namespace
}  // namespace redfuser::cpu
