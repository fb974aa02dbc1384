// Bounds of expressions beside their values, of random expressions.
#include "cascade/visibility/magnitude.h"
#include "ir/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace redfuser {
namespace {

constexpr int kLeaves = 4, kExpressions = 3000, kPoints = 20;

class RandomExpressions {
 public:
  explicit RandomExpressions(ir::ExprPool& pool) : pool_(pool) {}

  ir::Expr make(int depth) {
    if (depth == 0) return below(4) == 0 ? number() : leaf(below(kLeaves));
    switch (below(12)) {
      case 0:
      case 1:
        return pool_.add(make(depth - 1), make(depth - 1));
      case 2:
        return pool_.sub(make(depth - 1), make(depth - 1));
      case 3:
      case 4:
        return pool_.mul(make(depth - 1), make(depth - 1));
      case 5:
        return pool_.div(make(depth - 1), number());
      case 6:
        return pool_.make(ir::ExprOp::Neg, {make(depth - 1)});
      case 7:
        return pool_.make(ir::ExprOp::Tanh, {make(depth - 1)});
      case 8:
        return pool_.make(ir::ExprOp::Max, {make(depth - 1), make(depth - 1)});
      case 9:
        return pool_.make(ir::ExprOp::Min, {make(depth - 1), make(depth - 1)});
      case 10:
        return pool_.make(ir::ExprOp::Abs, {make(depth - 1)});
      default:
        return pool_.select(pool_.make(ir::ExprOp::Less, {make(depth - 1), number()}),
                            make(depth - 1), make(depth - 1));
    }
  }
  ir::Expr leaf(int i) { return pool_.leaf(ir::LeafKind::State, i, DType::Float64); }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  ir::Expr number() {
    const double value = between(-4, 4);
    return pool_.number(below(8) == 0 ? value * 1e3 : value, DType::Float64);
  }
  ir::ExprPool& pool_;
  std::minstd_rand random_{7};
};

TEST(Magnitude, BoundsWhatRandomExpressionsCompute) {
  ir::ExprPool pool;
  RandomExpressions random(pool);
  for (int n = 0; n < kExpressions; ++n) {
    double largest[kLeaves];
    for (double& bound : largest) bound = random.between(0, 3);
    ir::Expr e = random.make(1 + n % 4);
    const cascade::KnownBound known = [&](ir::Expr part) -> ir::Expr {
      if (part->op != ir::ExprOp::Leaf) return nullptr;
      return pool.number(largest[part->integer], DType::Float64);
    };
    ir::Expr both = cascade::magnitude(pool, e, known),
             above = cascade::upper_bound(pool, e, known);
    ASSERT_TRUE(both->is_constant() && above->is_constant());
    for (int point = 0; point < kPoints; ++point) {
      double values[kLeaves];
      for (int i = 0; i < kLeaves; ++i) values[i] = random.between(-largest[i], largest[i]);
      const double value = evaluate(e, [&](ir::Expr part) { return values[part->integer]; });
      const double room = 1e-9 * (1 + std::fabs(value));
      ASSERT_LE(std::fabs(value), both->number + room) << "expression " << n;
      ASSERT_LE(value, above->number + room) << "expression " << n;
      ASSERT_GE(above->number, 0);
      ASSERT_LE(above->number, both->number + room);
    }
  }
}

// A mask's -inf and its lowest numbers raise no bound of what they are added to.
TEST(Magnitude, NegativeFillsAreNoUpperBound) {
  ir::ExprPool pool;
  ir::Expr score = pool.leaf(ir::LeafKind::State, 0, DType::Float32);
  ir::Expr seen = pool.make(ir::ExprOp::Less, {pool.leaf(ir::LeafKind::State, 1, DType::Float32),
                                               pool.number(0, DType::Float32)});
  const cascade::KnownBound known = [&](ir::Expr part) -> ir::Expr {
    return part->op == ir::ExprOp::Leaf ? pool.number(5, DType::Float64) : nullptr;
  };
  for (const double fill : {-HUGE_VAL, -3e38, -1e4}) {
    ir::Expr mask =
        pool.select(seen, pool.number(0, DType::Float32), pool.number(fill, DType::Float32));
    EXPECT_EQ(cascade::upper_bound(pool, pool.add(score, mask), known)->number, 5) << fill;
    EXPECT_GE(cascade::magnitude(pool, pool.add(score, mask), known)->number, -fill) << fill;
  }
}

}  // namespace
}  // namespace redfuser
