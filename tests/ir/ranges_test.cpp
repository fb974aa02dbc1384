// Proofs about sizes and indices: proved facts hold for every size from 0 on, and facts that
// kernels depend on is proved.
#include <gtest/gtest.h>

#include <random>

#include "ir/evaluate.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"
#include "ops/sizes.h"

namespace redfuser {
namespace {

constexpr int kSymbols = 2;

// Random integer expressions over symbols and axes.
class Expressions {
 public:
  explicit Expressions(unsigned seed) : random_(seed) {
    for (int i = 0; i < kSymbols; ++i) symbols_.push_back(pool.symbol("s" + std::to_string(i)));
    axes_.push_back(pool.axis("i", symbols_[0]));
    axes_.push_back(pool.axis("j", pool.mul(symbols_[0], symbols_[1])));
    axes_.push_back(pool.axis("k", ops::at_least_zero(pool, less_one(symbols_[1]))));
    axes_.push_back(pool.axis("l", pool.make(ir::ExprOp::Min, {symbols_[1], pool.integer(3)})));
  }

  ir::Expr next(int depth) {
    const int kind = pick(depth > 0 ? 9 : 3);
    if (kind == 0) return pool.integer(pick(6) - 2);
    if (kind == 1) return symbols_[static_cast<size_t>(pick(kSymbols))];
    if (kind == 2) return axes_[static_cast<size_t>(pick(static_cast<int>(axes_.size())))];
    ir::Expr a = next(depth - 1), b = next(depth - 1);
    switch (kind) {
      case 3:
        return pool.add(a, b);
      case 4:
        return pool.sub(a, b);
      case 5:
        return pool.mul(a, b);
      case 6:
        return pool.make(ir::ExprOp::Min, {a, b});
      case 7:
        return ops::at_least_zero(pool, a);
      default:
        return pool.floordiv(a, pool.integer(1 + pick(4)));
    }
  }

  // The least value over all sizes up to 3 and all places of the axes; 0 where there is none.
  int64_t least(ir::Expr expr) {
    int64_t least = 0;
    bool found = false;
    for (int64_t s = 0; s < 16; ++s) {
      const std::vector<int64_t> sizes{s % 4, s / 4};
      std::vector<int64_t> extents;
      for (ir::Expr axis : axes_) {
        extents.push_back(expr->depends_on(axis) ? evaluate_size(axis->extent(), sizes) : 1);
      }
      for (int64_t i = 0; i < element_count(extents); ++i) {
        const int64_t value = value_at(expr, sizes, extents, i);
        least = found ? std::min(least, value) : value;
        found = true;
      }
    }
    return least;
  }

  ir::ExprPool pool;

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  ir::Expr less_one(ir::Expr x) { return pool.sub(x, pool.integer(1)); }

  int64_t value_at(ir::Expr expr, const std::vector<int64_t>& sizes,
                   const std::vector<int64_t>& extents, int64_t place) const {
    std::vector<int64_t> at(axes_.size());
    for (size_t a = axes_.size(); a-- > 0;) {
      at[a] = place % extents[a];
      place /= extents[a];
    }
    return static_cast<int64_t>(evaluate(expr, [&](ir::Expr leaf) -> double {
      if (leaf->op == ir::ExprOp::Symbol) {
        return static_cast<double>(sizes[static_cast<size_t>(leaf->integer)]);
      }
      const auto found = std::find(axes_.begin(), axes_.end(), leaf);
      return static_cast<double>(at[static_cast<size_t>(found - axes_.begin())]);
    }));
  }

  std::mt19937 random_;
  std::vector<ir::Expr> symbols_, axes_;
};

TEST(Ranges, WhatIsProvedHolds) {
  int proved = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Expressions expressions(seed);
    const ir::Expr expr = expressions.next(3);
    if (!proved_nonnegative(expr)) continue;
    ++proved;
    EXPECT_GE(expressions.least(expr), 0) << to_string(expressions.pool, expr) << ", seed " << seed;
  }
  EXPECT_GT(proved, 500);
}

// Folding while an expression is built is a proof as well.
TEST(Ranges, FoldsKeepTheValue) {
  ir::ExprPool pool;
  const ir::Expr n = pool.symbol("n"), one = pool.integer(1);
  const ir::Expr sizes[] = {
      pool.make(ir::ExprOp::Min, {n, one}),
      ops::at_least_zero(pool, pool.sub(n, one)),
      pool.select(ops::less(pool, n, one), pool.integer(7), pool.integer(8)),
      pool.select(ops::equal(pool, n, pool.integer(0)), pool.integer(7), pool.integer(8)),
  };
  const int64_t at_zero[] = {0, 0, 7, 7}, at_two[] = {1, 1, 8, 8};
  for (size_t i = 0; i < std::size(sizes); ++i) {
    EXPECT_EQ(evaluate_size(sizes[i], std::vector<int64_t>{0}), at_zero[i]);
    EXPECT_EQ(evaluate_size(sizes[i], std::vector<int64_t>{2}), at_two[i]);
  }
}

TEST(Ranges, WhereAnAxisHasAPlaceItsExtentIsNotEmpty) {
  ir::ExprPool pool;
  const ir::Expr n = pool.symbol("n"), m = pool.symbol("m"), one = pool.integer(1);
  const ir::Expr i = pool.axis("i", pool.mul(n, m));
  const ir::Expr shorter = ops::at_least_zero(pool, pool.sub(n, one)), j = pool.axis("j", shorter);
  EXPECT_FALSE(proved_less(pool, pool.integer(0), n));
  EXPECT_TRUE(proved_less(pool, pool.integer(0), pool.add(n, i)));
  EXPECT_TRUE(proved_less(pool, pool.floordiv(i, m), n));
  EXPECT_TRUE(proved_less(pool, pool.add(j, one), n));
  EXPECT_EQ(pool.floordiv(pool.mul(n, m), n), m);
  EXPECT_EQ(pool.floormod(pool.add(pool.mul(n, m), j), n), j);
}

// As exporters shift rows by padding, reshaping and slicing them.
TEST(Ranges, ShiftedRowsHaveNoDivision) {
  ir::ExprPool pool;
  const ir::Expr i = pool.axis("i", pool.integer(499)), j = pool.axis("j", pool.integer(499));
  const auto times = [&](int64_t factor, ir::Expr e) { return pool.mul(pool.integer(factor), e); };
  const ir::Expr flat = pool.add(pool.integer(499), pool.add(times(997, i), j));
  EXPECT_EQ(pool.floordiv(flat, pool.integer(998)), i);
  EXPECT_EQ(pool.floormod(flat, pool.integer(998)), pool.add(pool.integer(499), pool.sub(j, i)));
  const ir::Expr before = pool.sub(flat, pool.integer(998));
  EXPECT_EQ(pool.floordiv(before, pool.integer(998)), pool.sub(i, pool.integer(1)));
}

TEST(Ranges, DivisionsByConstantsKeepTheValue) {
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  int folded = 0;
  for (int draw = 0; draw < 2000; ++draw) {
    ir::ExprPool pool;
    const int64_t rows = pick(1, 6), columns = pick(1, 6), divisor = pick(2, 9);
    const int64_t a = pick(-12, 12), b = pick(-12, 12), c = pick(-9, 9);
    const ir::Expr i = pool.axis("i", pool.integer(rows)),
                   j = pool.axis("j", pool.integer(columns));
    const ir::Expr sum = pool.add(
        pool.add(pool.mul(pool.integer(a), i), pool.mul(pool.integer(b), j)), pool.integer(c));
    const ir::Expr quotient = pool.floordiv(sum, pool.integer(divisor));
    const ir::Expr rest = pool.floormod(sum, pool.integer(divisor));
    folded += quotient->op != ir::ExprOp::FloorDiv && quotient->op != ir::ExprOp::Constant;
    for (int64_t at = 0; at < rows * columns; ++at) {
      const auto leaf = [&](ir::Expr axis) -> double {
        return static_cast<double>(axis == i ? at / columns : at % columns);
      };
      const int64_t value = a * (at / columns) + b * (at % columns) + c;
      const int64_t below = (value - ((value % divisor) + divisor) % divisor) / divisor;
      ASSERT_EQ(evaluate(quotient, leaf), static_cast<double>(below)) << to_string(pool, sum);
      ASSERT_EQ(evaluate(rest, leaf), static_cast<double>(value - below * divisor));
    }
  }
  EXPECT_GT(folded, 100);
}

}  // namespace
}  // namespace redfuser
