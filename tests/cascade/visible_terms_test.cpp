// Reductions over what a condition leaves: the same values from fewer terms.
#include "cascade/visibility/visible_terms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "ir/evaluate.h"

namespace redfuser::cascade {
namespace {

constexpr int64_t kRows = 9, kColumns = 7;
constexpr int64_t kImage = 0, kBox = 1;  // values
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class VisibleTerms : public testing::Test {
 protected:
  ir::Expr bound(int64_t i) { return pool.read(kBox, DType::Float32, {pool.integer(i)}); }
  ir::Expr as_float(ir::Expr e) { return pool.cast(DType::Float32, e); }
  ir::Expr compare(ir::ExprOp op, ir::Expr a, ir::Expr b) { return pool.make(op, {a, b}); }
  ir::Expr both(ir::Expr a, ir::Expr b) { return pool.make(ir::ExprOp::And, {a, b}); }
  ir::Expr between(ir::Expr low, ir::Expr at, ir::Expr high) {
    return both(compare(ir::ExprOp::LessEqual, low, at), compare(ir::ExprOp::Less, at, high));
  }
  ir::Expr image() { return pool.read(kImage, DType::Float32, {i, j}); }
  ir::Expr over(ir::Reduction reduction, ir::Expr term) {
    return pool.reduce(reduction, i, pool.reduce(reduction, j, term));
  }
  ir::Expr nothing(ir::Reduction reduction) {
    return pool.number(reduction == ir::Reduction::Sum   ? 0
                       : reduction == ir::Reduction::Max ? -kInfinity
                                                         : kInfinity,
                       DType::Float32);
  }

  // The value, and how many elements of the image are read for it.
  std::pair<double, int> evaluated(ir::Expr e, const std::vector<double>& box) {
    int count = 0;
    const double value = evaluate(e, [&](ir::Expr leaf) {
      if (leaf->integer == kBox) return box[static_cast<size_t>(leaf->args[0]->integer)];
      ++count;
      return static_cast<double>((leaf->args[0]->integer * 5 + leaf->args[1]->integer * 3) % 11);
    });
    return {value, count};
  }

  ir::ExprPool pool;
  ir::Expr i = pool.axis("i", pool.integer(kRows)), j = pool.axis("j", pool.integer(kColumns));
};

// Bounds that are whole, between integers, outside of the image, infinite or no numbers.
std::vector<double> drawn_box(std::mt19937& random) {
  const double special[] = {kInfinity, -kInfinity, std::nan(""), 1e30, -1e30, 1e-30, -0.0};
  std::vector<double> box;
  for (int bound = 0; bound < 4; ++bound) {
    const double whole = static_cast<double>(random() % 16) - 3;
    const unsigned kind = random() % 8;
    box.push_back(kind == 0  ? special[random() % std::size(special)]
                  : kind < 4 ? whole
                             : whole + static_cast<double>(random() % 8) / 8);
  }
  return box;
}

TEST_F(VisibleTerms, ValuesAreTheSame) {
  ir::Expr y = as_float(i), x = as_float(j), outside = pool.number(-4, DType::Float32);
  ir::Expr inside = both(between(bound(0), y, bound(1)), between(bound(2), x, bound(3)));
  ir::Expr beyond = pool.make(ir::ExprOp::Not, {between(bound(0), y, bound(1))});
  std::mt19937 random(7);
  for (const auto reduction : {ir::Reduction::Sum, ir::Reduction::Max, ir::Reduction::Min}) {
    ir::Expr none = nothing(reduction);
    const ir::Expr terms[] = {pool.select(inside, image(), none),
                              pool.select(beyond, none, image()),
                              pool.select(beyond, image(), none),
                              pool.select(inside, image(), outside),
                              pool.select(compare(ir::ExprOp::Less, bound(0), y), image(), none),
                              pool.select(compare(ir::ExprOp::LessEqual, x, bound(1)),
                                          pool.select(inside, none, image()), none)};
    for (ir::Expr term : terms) {
      ir::Expr whole = over(reduction, term), found = visible_terms(pool, whole);
      for (int drawn = 0; drawn < 200; ++drawn) {
        const std::vector<double> box = drawn_box(random);
        const double expected = evaluated(whole, box).first, value = evaluated(found, box).first;
        ASSERT_TRUE(value == expected || (std::isnan(value) && std::isnan(expected)))
            << to_string(pool, term) << " " << box[0] << " " << box[1] << " " << box[2] << " "
            << box[3];
      }
    }
  }
}

TEST_F(VisibleTerms, WhatIsOutsideIsNotVisited) {
  ir::Expr y = as_float(i), x = as_float(j);
  ir::Expr inside = both(between(bound(0), y, bound(1)), between(bound(2), x, bound(3)));
  // A term that reads the image wherever it is visited.
  ir::Expr none = nothing(ir::Reduction::Max);
  ir::Expr term =
      pool.select(both(compare(ir::ExprOp::Less, none, image()), inside), image(), none);
  ir::Expr whole = over(ir::Reduction::Max, term), found = visible_terms(pool, whole);
  EXPECT_EQ(evaluated(whole, {2.5, 5, 1, 3}).second, kRows * kColumns);
  EXPECT_EQ(evaluated(found, {2.5, 5, 1, 3}).second, 2 * 2);
  EXPECT_EQ(evaluated(found, {5, 2, 1, 3}).second, 0);
}

// Of integers, too.
TEST_F(VisibleTerms, ListsEndWhereDataSay) {
  ir::Expr length = pool.read(kBox, DType::Int64, {pool.integer(0)});
  ir::Expr term =
      pool.select(compare(ir::ExprOp::Less, j, length), pool.read(kImage, DType::Float32, {j, j}),
                  pool.number(0, DType::Float32));
  ir::Expr found = visible_terms(pool, pool.reduce(ir::Reduction::Sum, j, term));
  EXPECT_TRUE(found->extent()->has_read);
}

TEST_F(VisibleTerms, OthersStay) {
  ir::Expr none = pool.number(0, DType::Float32);
  ir::Expr padded = pool.select(compare(ir::ExprOp::Less, i, j), image(), none);
  ir::Expr unequal = pool.select(between(bound(0), as_float(i), bound(1)), image(),
                                 pool.number(1, DType::Float32));
  for (ir::Expr term : {padded, unequal, image()}) {
    ir::Expr sum = over(ir::Reduction::Sum, term);
    EXPECT_EQ(visible_terms(pool, sum), sum);
  }
}

}  // namespace
}  // namespace redfuser::cascade
