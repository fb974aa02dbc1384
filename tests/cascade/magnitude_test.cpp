// Bounds of expressions beside their values, of random expressions.
#include "cascade/visibility/magnitude.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace redfuser {
namespace {

constexpr int kLeaves = 4, kExpressions = 3000, kPoints = 20;

class RandomExpressions {
 public:
  explicit RandomExpressions(ExprPool& pool) : pool_(pool) {}

  Expr make(int depth) {
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
        return pool_.make(ExprOp::Neg, {make(depth - 1)});
      case 7:
        return pool_.make(ExprOp::Tanh, {make(depth - 1)});
      case 8:
        return pool_.make(ExprOp::Max, {make(depth - 1), make(depth - 1)});
      case 9:
        return pool_.make(ExprOp::Min, {make(depth - 1), make(depth - 1)});
      case 10:
        return pool_.make(ExprOp::Abs, {make(depth - 1)});
      default:
        return pool_.select(pool_.make(ExprOp::Less, {make(depth - 1), number()}), make(depth - 1),
                            make(depth - 1));
    }
  }
  Expr leaf(int i) { return pool_.leaf(LeafKind::State, i, DType::Float64); }
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Expr number() {
    const double value = between(-4, 4);
    return pool_.number(below(8) == 0 ? value * 1e3 : value, DType::Float64);
  }
  ExprPool& pool_;
  std::minstd_rand random_{7};
};

TEST(Magnitude, BoundsWhatRandomExpressionsCompute) {
  ExprPool pool;
  RandomExpressions random(pool);
  for (int n = 0; n < kExpressions; ++n) {
    double largest[kLeaves];
    for (double& bound : largest) bound = random.between(0, 3);
    Expr e = random.make(1 + n % 4);
    const KnownBound known = [&](Expr part) -> Expr {
      if (part->op != ExprOp::Leaf) return nullptr;
      return pool.number(largest[part->integer], DType::Float64);
    };
    Expr both = magnitude(pool, e, known), above = upper_bound(pool, e, known);
    ASSERT_TRUE(both->is_constant() && above->is_constant());
    for (int point = 0; point < kPoints; ++point) {
      double values[kLeaves];
      for (int i = 0; i < kLeaves; ++i) values[i] = random.between(-largest[i], largest[i]);
      const double value = evaluate(e, [&](Expr part) { return values[part->integer]; });
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
  ExprPool pool;
  Expr score = pool.leaf(LeafKind::State, 0, DType::Float32);
  Expr seen = pool.make(ExprOp::Less, {pool.leaf(LeafKind::State, 1, DType::Float32),
                                       pool.number(0, DType::Float32)});
  const KnownBound known = [&](Expr part) -> Expr {
    return part->op == ExprOp::Leaf ? pool.number(5, DType::Float64) : nullptr;
  };
  for (const double fill : {-HUGE_VAL, -3e38, -1e4}) {
    Expr mask =
        pool.select(seen, pool.number(0, DType::Float32), pool.number(fill, DType::Float32));
    EXPECT_EQ(upper_bound(pool, pool.add(score, mask), known)->number, 5) << fill;
    EXPECT_GE(magnitude(pool, pool.add(score, mask), known)->number, -fill) << fill;
  }
}

}  // namespace
}  // namespace redfuser
