// What estimates count of memory.
#include <gtest/gtest.h>

#include <functional>

#include "select/strides.h"

namespace redfuser::codegen_tests {
namespace {

constexpr int64_t kRows = 4, kColumns = 64;

struct Case {
  const char* name;
  std::function<ir::Expr(ir::ExprPool&, ir::Expr row, ir::Expr column)> offset;
  double bytes;  // of an access by one of neighbouring threads
};

const Case kCases[] = {
    {"adjacent", [](auto& pool, auto row, auto column) { return pool.add(row, column); }, 4},
    {"clamped",
     [](auto& pool, auto, auto column) {
       const ir::Expr next = pool.add(column, pool.integer(-1));
       const ir::Expr low = pool.make(ir::ExprOp::Max, {next, pool.integer(0)});
       return pool.make(ir::ExprOp::Min, {low, pool.integer(kColumns - 1)});
     },
     4},
    {"clamped_apart",
     [](auto& pool, auto, auto column) {
       return pool.make(ir::ExprOp::Max, {pool.mul(column, pool.integer(16)), pool.integer(0)});
     },
     32},
    {"clamped_then_apart",
     [](auto& pool, auto, auto column) {
       const ir::Expr held = pool.make(ir::ExprOp::Max, {column, pool.integer(0)});
       return pool.mul(held, pool.integer(16));
     },
     32},
    {"divided",
     [](auto& pool, auto, auto column) { return pool.floordiv(column, pool.integer(3)); }, 4},
    {"by_chance",
     [](auto& pool, auto, auto column) { return pool.read(1, DType::Int64, {column}); },
     8 + 8},  // the place's, and a share of a sector
    // A cycle of the cache for the lanes and points that have it.
    {"the_same", [](auto&, auto row, auto) { return row; }, 22.0 / 32 / 4},
};

TEST(SelectWork, CountsWhatNeighboursRead) {
  for (const Case& c : kCases) {
    ir::ExprPool pool;
    const ir::Expr row = pool.axis("r", pool.integer(kRows));
    const ir::Expr column = pool.axis("c", pool.integer(kColumns));
    const ir::Expr read = pool.read(0, DType::Float32, {c.offset(pool, row, column)});
    const std::vector<ir::Expr> roots = {read};
    const select::Work work = select::work_of(roots, {row, column}, select::KnownSizes());
    EXPECT_DOUBLE_EQ(work.accesses, kRows * kColumns * c.bytes) << c.name;
  }
}

// Rows of one element after the other, by a thread for each.
TEST(SelectWork, StepsOfALoopShareSectors) {
  constexpr int64_t kLength = 8;
  ir::ExprPool pool;
  const ir::Expr row = pool.axis("r", pool.integer(1000)),
                 k = pool.axis("k", pool.integer(kLength));
  const auto accesses = [&](ir::Expr offset) {
    const ir::Expr read = pool.read(0, DType::Float32, {offset});
    const std::vector<ir::Expr> roots = {pool.reduce(ir::Reduction::Sum, k, read)};
    return select::work_of(roots, {row}, select::KnownSizes()).accesses / (1000 * kLength);
  };
  const ir::Expr length = pool.integer(kLength);
  EXPECT_EQ(accesses(pool.add(pool.mul(row, length), k)), 22.0 * 8 / 32);  // by banks
  EXPECT_EQ(accesses(pool.add(pool.mul(row, length), pool.mul(k, pool.integer(2)))), 8);
  EXPECT_EQ(accesses(pool.mul(pool.add(row, k), pool.integer(1000))), 32);
  EXPECT_LT(accesses(pool.add(row, k)), 2);  // windows
  EXPECT_EQ(accesses(pool.add(row, pool.mul(k, pool.integer(1000)))), 4);
}

// Windows touch an element many times; halves of an array are two parts of it.
TEST(SelectWork, DistinctBytesAreThoseOfTheValue) {
  ir::ExprPool pool;
  const ir::Expr place = pool.axis("p", pool.integer(1000)), k = pool.axis("k", pool.integer(9));
  const auto bytes = [&](const std::vector<ir::Expr>& roots) {
    return select::work_of(roots, {place}, select::KnownSizes()).bytes;
  };
  const auto read = [&](ir::Expr offset) { return pool.read(0, DType::Float32, {offset}); };
  EXPECT_EQ(bytes({pool.reduce(ir::Reduction::Max, k, read(pool.add(place, k)))}), 4 * 1008);
  EXPECT_EQ(bytes({read(place), read(pool.add(place, pool.integer(1000)))}), 4 * 2000);
  EXPECT_EQ(bytes({read(place), read(pool.add(place, pool.integer(1)))}), 4 * 1001);
  EXPECT_EQ(bytes({read(pool.mul(place, pool.integer(3)))}), 4 * 1000);
}

// What is free of a loop is computed before it.
TEST(SelectWork, InvariantsCountOnce) {
  ir::ExprPool pool;
  const ir::Expr place = pool.axis("p", pool.integer(10)), k = pool.axis("k", pool.integer(1000));
  const ir::Expr x = pool.read(0, DType::Float32, {place}), y = pool.read(1, DType::Float32, {k});
  const auto specials = [&](ir::Expr term) {
    const std::vector<ir::Expr> roots = {pool.reduce(ir::Reduction::Sum, k, term)};
    return select::work_of(roots, {place}, select::KnownSizes()).specials;
  };
  const auto exp = [&](ir::Expr e) { return pool.make(ir::ExprOp::Exp, {e}); };
  EXPECT_EQ(specials(pool.mul(exp(x), y)), 10);
  EXPECT_EQ(specials(exp(pool.mul(x, y))), 10000);
}

// Lanes whose elements are a power of two apart meet in a bank.
TEST(SelectWork, LoadsTakeCyclesByBanksAndLines) {
  EXPECT_EQ(select::load_cycles(1, 4), 1);
  EXPECT_EQ(select::load_cycles(0, 4), 1);
  EXPECT_EQ(select::load_cycles(32, 4), 32);
  EXPECT_EQ(select::load_cycles(24, 4), 8);
  EXPECT_EQ(select::load_cycles(32, 2), 16);
  EXPECT_NEAR(select::load_cycles(63, 2), 10.5, 0.1);
}

}  // namespace
}  // namespace redfuser::codegen_tests
