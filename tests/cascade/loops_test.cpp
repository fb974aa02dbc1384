// Reductions over several loops, and output axes of which a row is a digit.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cascade/extract/merge_loops.h"
#include "cascade/extract/split_rows.h"
#include "ir/evaluate.h"

namespace redfuser::cascade {
namespace {

// Reads are of one tensor, whose elements differ from place to place.
double value_of(ir::Expr expr, const std::vector<std::pair<ir::Expr, int64_t>>& axes) {
  ir::Environment environment = [&](ir::Expr e) -> double {
    if (e->op == ir::ExprOp::Read) {
      double value = 0;
      for (ir::Expr index : e->args) value = value * 1.7 + evaluate(index, environment) + 0.3;
      return std::fmod(value, 2.3);
    }
    for (auto& [axis, place] : axes) {
      if (e == axis) return static_cast<double>(place);
    }
    return static_cast<double>(e->extent()->integer);
  };
  return evaluate(expr, environment);
}

int reductions_in(ir::Expr expr) {
  int count = 0;
  visit(expr, [&](ir::Expr e) { count += e->op == ir::ExprOp::Reduce; });
  return count;
}

class Loops : public testing::Test {
 protected:
  ir::Expr axis(int64_t extent) { return pool.axis("a", pool.integer(extent)); }
  ir::Expr read(std::vector<ir::Expr> index) {
    return pool.read(0, DType::Float64, std::move(index));
  }
  ir::Expr over(ir::Reduction reduction, std::vector<ir::Expr> axes, ir::Expr body) {
    for (size_t i = axes.size(); i-- > 0;) body = pool.reduce(reduction, axes[i], body);
    return body;
  }
  ir::ExprPool pool;
};

TEST_F(Loops, OfOneReductionMerge) {
  ir::Expr row = axis(2), i = axis(3), j = axis(4), k = axis(5);
  for (const auto reduction : {ir::Reduction::Sum, ir::Reduction::Max, ir::Reduction::Prod}) {
    const ir::Expr nested = over(reduction, {i, j, k}, read({i, row, j, k}));
    const ir::Expr merged = merge_loops(pool, nested);
    EXPECT_EQ(reductions_in(merged), 1);
    for (int64_t place : {0, 1}) {
      EXPECT_NEAR(value_of(merged, {{row, place}}), value_of(nested, {{row, place}}), 1e-9);
    }
  }
}

// The mean within is merged too, and read at the same places.
TEST_F(Loops, OfStagesMerge) {
  ir::Expr row = axis(2), i = axis(3), j = axis(4), k = axis(3), l = axis(4);
  const ir::Expr mean = over(ir::Reduction::Sum, {i, j}, read({i, row, j}));
  const ir::Expr d = pool.sub(read({k, row, l}), mean);
  const ir::Expr nested = over(ir::Reduction::Sum, {k, l}, pool.mul(d, d));
  const ir::Expr merged = merge_loops(pool, nested);
  EXPECT_EQ(reductions_in(merged), 2);
  EXPECT_NEAR(value_of(merged, {{row, 1}}), value_of(nested, {{row, 1}}), 1e-6);
}

TEST_F(Loops, OfOtherReductionsStay) {
  ir::Expr i = axis(3), j = axis(4), d = axis(5);
  const ir::Expr largest = over(ir::Reduction::Max, {j}, read({i, j}));
  const ir::Expr sum = over(ir::Reduction::Sum, {i}, largest);
  EXPECT_EQ(merge_loops(pool, sum), sum);
  // A contraction of which one operand moves along the outer loop.
  const ir::Expr scores = over(ir::Reduction::Sum, {d}, pool.mul(read({d}), read({j, d})));
  const ir::Expr total = over(ir::Reduction::Sum, {j}, scores);
  EXPECT_EQ(merge_loops(pool, total), total);
}

TEST_F(Loops, OfAnAxisThatRowsSeeInPartsAreTwo) {
  ir::Expr n = axis(2), c = axis(12), h = axis(5), j = axis(20);
  const ir::Expr group = pool.floordiv(c, pool.integer(4));
  const ir::Expr channel =
      pool.add(pool.mul(group, pool.integer(4)), pool.floordiv(j, pool.integer(5)));
  const ir::Expr sum =
      over(ir::Reduction::Sum, {j}, read({n, channel, pool.floormod(j, pool.integer(5))}));
  LoweredOutput output{0, pool.sub(read({n, c, h}), sum), {n, c, h}};
  const ir::Expr before = output.body;
  const std::vector<ir::Expr> loops = split_rows(pool, output);
  ASSERT_EQ(loops.size(), 4u);
  EXPECT_EQ(loops[1]->extent()->integer, 3);
  EXPECT_EQ(loops[2]->extent()->integer, 4);
  for (int64_t place = 0; place < 12; ++place) {
    EXPECT_NEAR(
        value_of(output.body, {{n, 1}, {loops[1], place / 4}, {loops[2], place % 4}, {h, 3}}),
        value_of(before, {{n, 1}, {c, place}, {h, 3}}), 1e-9);
    EXPECT_EQ(value_of(output.axes[1], {{loops[1], place / 4}, {loops[2], place % 4}}), place);
  }
  // One that reductions see whole stays.
  LoweredOutput whole{0, over(ir::Reduction::Sum, {j}, read({c, j})), {c}};
  EXPECT_EQ(split_rows(pool, whole), std::vector<ir::Expr>{c});
}

TEST_F(Loops, SharedAxesComeAgainAndStayApart) {
  ir::Expr a = axis(12), c = axis(12), j = axis(20), four = pool.integer(4);
  const ir::Expr sum =
      over(ir::Reduction::Sum, {j}, read({pool.floordiv(a, four), pool.floordiv(c, four), j}));
  const auto split = [&](Axes axes) {
    LoweredOutput output{0, pool.add(read({a, c, a}), sum), {a, c}};
    const std::vector<ir::Expr> loops = split_rows(pool, output, axes);
    EXPECT_EQ(std::set<ir::Expr>(loops.begin(), loops.end()).size(), 4u);
    return output.body;
  };
  EXPECT_EQ(split(Axes::Shared), split(Axes::Shared));
  EXPECT_NE(split(Axes::Own), split(Axes::Own));
}

TEST_F(Loops, DigitsOfDigitsHaveOneForm) {
  ir::Expr x = axis(600), three = pool.integer(3), five = pool.integer(5);
  const ir::Expr fifteen = pool.integer(15);
  EXPECT_EQ(pool.floordiv(pool.floormod(x, fifteen), five),
            pool.floormod(pool.floordiv(x, five), three));
  EXPECT_EQ(pool.add(pool.floormod(x, five),
                     pool.mul(five, pool.floormod(pool.floordiv(x, five), three))),
            pool.floormod(x, fifteen));
}

}  // namespace
}  // namespace redfuser::cascade
