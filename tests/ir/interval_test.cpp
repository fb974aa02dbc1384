// Intervals of integer expressions hold all of their values: in numbers, over a tile, in proofs.
#include "ir/interval.h"

#include <gtest/gtest.h>

#include <random>

#include "cascade/visibility/index_bounds.h"
#include "cpu/tile/interval.h"
#include "ir/evaluate.h"
#include "ir/ranges.h"

namespace redfuser {
namespace {

constexpr int64_t kExtents[] = {5, 3};

// Random expressions of two axes, with divisors of one value or several.
class Expressions {
 public:
  explicit Expressions(unsigned seed) : random_(seed) {
    for (const int64_t extent : kExtents) axes.push_back(pool.axis("a", pool.integer(extent)));
  }

  ir::Expr next(int depth) {
    const int kind = pick(depth > 0 ? 10 : 2);
    if (kind == 0) return pool.integer(pick(9) - 4);
    if (kind == 1) return axes[static_cast<size_t>(pick(2))];
    const ir::Expr a = next(depth - 1), b = next(depth - 1);
    switch (kind) {
      case 2:
        return pool.add(a, b);
      case 3:
        return pool.sub(a, b);
      case 4:
        return pool.mul(a, b);
      case 5:
        return pool.make(ir::ExprOp::Min, {a, b});
      case 6:
        return pool.make(ir::ExprOp::Max, {a, b});
      case 7:
        return pool.select(pool.make(ir::ExprOp::Less, {a, b}), a, next(depth - 1));
      case 8:
        return pool.floordiv(a, divisor(depth));
      default:
        return pool.floormod(a, divisor(depth));
    }
  }

  // Calls `look` with the value at every place of the tile.
  template <typename Look>
  void values(ir::Expr expr, const ir::Interval<int64_t> (&tile)[2], const Look& look) {
    for (int64_t i = tile[0].low; i <= tile[0].high; ++i) {
      for (int64_t j = tile[1].low; j <= tile[1].high; ++j) {
        look(value(expr, [&](ir::Expr e) { return e == axes[0] ? i : j; }));
      }
    }
  }

  template <typename Leaf>
  static int64_t value(ir::Expr expr, const Leaf& leaf) {
    return static_cast<int64_t>(
        evaluate(expr, [&](ir::Expr e) { return static_cast<double>(leaf(e)); }));
  }

  ir::ExprPool pool;
  std::vector<ir::Expr> axes;

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  ir::Expr divisor(int depth) {
    if (pick(2) == 0) return pool.integer(1 + pick(4));
    return pool.make(ir::ExprOp::Max, {next(depth - 1), pool.integer(1 + pick(3))});
  }

  std::mt19937 random_;
};

TEST(Interval, NumbersHoldAllValues) {
  int known = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Expressions expressions(seed);
    const ir::Expr expr = expressions.next(3);
    const ir::Interval<int64_t> tile[] = {{seed % 3, 4 - seed % 2}, {seed % 2, 2}};
    const auto found = cpu::interval_of(
        expr, [&](ir::Expr axis) { return tile[axis == expressions.axes[0] ? 0 : 1]; });
    known += found.high < 100 ? 1 : 0;
    expressions.values(expr, tile, [&](int64_t value) {
      EXPECT_LE(found.low, value) << to_string(expressions.pool, expr) << ", seed " << seed;
      EXPECT_GE(found.high, value) << to_string(expressions.pool, expr) << ", seed " << seed;
    });
  }
  EXPECT_GT(known, 3500);
}

TEST(Interval, UnknownQuotientsStayUnknown) {
  ir::ExprPool pool;
  const ir::Expr read = pool.read(0, DType::Int64, {});
  const auto found = cpu::interval_of(pool.floordiv(read, pool.integer(3)));
  EXPECT_EQ(found.high, int64_t{1} << 62);
  EXPECT_EQ(found.low, -(int64_t{1} << 62));
}

TEST(Interval, ExpressionsOverATileHoldAllValues) {
  int known = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Expressions expressions(seed);
    const ir::Expr expr = expressions.next(3);
    const ir::Interval<int64_t> tile[] = {{seed % 3, 4 - seed % 2}, {seed % 2, 2}};
    std::vector<cascade::TileCorner> corners;
    for (ir::Expr axis : expressions.axes) {
      corners.push_back({axis, expressions.pool.axis("first", axis->extent()),
                         expressions.pool.axis("last", axis->extent())});
    }
    const auto found = cascade::IndexBounds(expressions.pool, corners).of(expr);
    if (!found) continue;
    ++known;
    const auto of_corner = [&](ir::Expr e) {
      const size_t i = e == corners[0].first || e == corners[0].last ? 0 : 1;
      return e == corners[i].first ? tile[i].low : tile[i].high;
    };
    const int64_t low = Expressions::value(found->low, of_corner);
    const int64_t high = Expressions::value(found->high, of_corner);
    expressions.values(expr, tile, [&](int64_t value) {
      EXPECT_LE(low, value) << to_string(expressions.pool, expr) << ", seed " << seed;
      EXPECT_GE(high, value) << to_string(expressions.pool, expr) << ", seed " << seed;
    });
  }
  EXPECT_GT(known, 2500);
}

TEST(Interval, ProofsHold) {
  int proved = 0;
  const ir::Interval<int64_t> all[] = {{0, kExtents[0] - 1}, {0, kExtents[1] - 1}};
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Expressions expressions(seed);
    const ir::Expr expr = expressions.next(3);
    if (!proved_nonnegative(expr)) continue;
    ++proved;
    expressions.values(expr, all, [&](int64_t value) {
      EXPECT_GE(value, 0) << to_string(expressions.pool, expr) << ", seed " << seed;
    });
  }
  EXPECT_GT(proved, 1000);
}

}  // namespace
}  // namespace redfuser
