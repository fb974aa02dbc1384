// What estimates count of memory.
#include <gtest/gtest.h>

#include <functional>

#include "select/work.h"

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
     [](auto& pool, auto, auto column) { return pool.floordiv(column, pool.integer(3)); }, 32},
    {"the_same", [](auto&, auto row, auto) { return row; }, 4.0 / 32},
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

}  // namespace
}  // namespace redfuser::codegen_tests
