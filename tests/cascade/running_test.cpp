// Which reductions run along an axis, and which do not.
#include "cascade/visibility/running.h"

#include <gtest/gtest.h>

namespace redfuser::cascade {
namespace {

using ir::Expr;
using ir::ExprOp;
using ir::Reduction;

class RunningReductions : public ::testing::Test {
 protected:
  Expr read(Expr at) { return pool.read(0, DType::Float32, {at}); }
  Expr number(double value) { return pool.number(value, DType::Float32); }
  Expr below(Expr a, Expr b) { return pool.make(ExprOp::Less, {a, b}); }
  Expr at_most(Expr a, Expr b) { return pool.make(ExprOp::LessEqual, {a, b}); }
  Expr both(Expr a, Expr b) { return pool.make(ExprOp::And, {a, b}); }
  std::optional<Running> sum(Expr condition, Expr x, Expr other) {
    return running_reduction(pool,
                             pool.reduce(Reduction::Sum, l, pool.select(condition, x, other)));
  }

  ir::ExprPool pool;
  Expr n = pool.symbol("n"), i = pool.axis("i", n), l = pool.axis("l", n);
};

TEST_F(RunningReductions, GoEitherWay) {
  struct Case {
    Expr condition;
    bool reverse, exclusive;
  };
  for (const Case& c : {Case{at_most(l, i), false, false},
                        {below(l, i), false, true},
                        {at_most(i, l), true, false},
                        {below(i, l), true, true}}) {
    const auto found = sum(c.condition, read(l), number(0));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->axis, i);
    EXPECT_EQ(found->element, read(i));
    EXPECT_EQ(found->reverse, c.reverse);
    EXPECT_EQ(found->exclusive, c.exclusive);
  }
}

TEST_F(RunningReductions, KeepOtherConditionsWithTheElement) {
  const auto even = [&](Expr at) {
    return pool.make(ExprOp::Equal, {pool.floormod(at, pool.integer(2)), pool.integer(0)});
  };
  const auto found = sum(both(even(l), at_most(l, i)), read(l), number(0));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->element, pool.select(even(i), read(i), number(0)));
}

TEST_F(RunningReductions, AreSeenThroughNegationAndCasts) {
  const auto hidden = sum(below(i, l), number(0), read(l));
  ASSERT_TRUE(hidden);
  EXPECT_FALSE(hidden->reverse || hidden->exclusive);
  Expr half =
      pool.select(at_most(l, i), pool.read(1, DType::Float16, {l}), pool.number(0, DType::Float16));
  const auto cast =
      running_reduction(pool, pool.reduce(Reduction::Sum, l, pool.cast(DType::Float32, half)));
  ASSERT_TRUE(cast);
  EXPECT_EQ(cast->element, pool.cast(DType::Float32, pool.read(1, DType::Float16, {i})));
}

TEST_F(RunningReductions, AreNoOthers) {
  Expr other = pool.axis("o", pool.symbol("m"));
  EXPECT_FALSE(sum(at_most(l, i), read(l), number(1)));                     // not hidden
  EXPECT_FALSE(sum(at_most(l, i), pool.mul(read(l), read(i)), number(0)));  // depends on i
  EXPECT_FALSE(sum(at_most(l, other), read(l), number(0)));                 // another extent
  EXPECT_FALSE(sum(at_most(pool.add(l, l), i), read(l), number(0)));        // half of the range
  EXPECT_FALSE(sum(at_most(l, pool.add(i, pool.integer(1))), read(l), number(0)));
  EXPECT_FALSE(sum(pool.make(ExprOp::Equal, {l, i}), read(l), number(0)));
  EXPECT_FALSE(running_reduction(pool, pool.reduce(Reduction::Sum, l, read(l))));
  Expr least = pool.select(at_most(l, i), read(l), number(0));
  EXPECT_FALSE(running_reduction(pool, pool.reduce(Reduction::Max, l, least)));
}

TEST_F(RunningReductions, AreTheOnlyOneOfABody) {
  Expr first = pool.reduce(Reduction::Sum, l, pool.select(at_most(l, i), read(l), number(0)));
  Expr whole = pool.reduce(Reduction::Sum, l, read(l));
  EXPECT_TRUE(running_body(pool, pool.mul(first, read(i))));
  EXPECT_FALSE(running_body(pool, pool.div(first, whole)));
  EXPECT_FALSE(running_body(pool, read(i)));
}

}  // namespace
}  // namespace redfuser::cascade
