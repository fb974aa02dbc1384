// A tape gives the same result as the evaluation of its expression.
#include <gtest/gtest.h>

#include <cmath>

#include "cascade/certify/tape.h"
#include "ir/evaluate.h"

namespace redfuser {
namespace {

// Numbers by the leaf and its indices, with infinities and NaN among them.
double number_of(ir::Expr leaf, int seed) {
  if (leaf->op == ir::ExprOp::Axis || leaf->op == ir::ExprOp::Symbol) return 3 + seed % 2;
  int64_t mixed = leaf->integer * 31 + seed;
  for (ir::Expr index : leaf->args) mixed = mixed * 7 + index->integer;
  switch (mixed % 11) {
    case 7:
      return INFINITY;
    case 9:
      return std::nan("");
    default:
      return static_cast<double>(mixed % 11) - 4;
  }
}

// More positions than a tape computes at once, beginning in their middle.
void expect_equal_positions(ir::Expr expr, cascade::Tape& tape, ir::Expr axis) {
  constexpr int64_t kBegin = 5, kEnd = 90;
  std::vector<double> actual(kEnd - kBegin);
  tape.run([](ir::Expr e) { return number_of(e, 0); }, {axis, kBegin, kEnd}, actual.data());
  for (int64_t position = kBegin; position < kEnd; ++position) {
    const double expected = evaluate(expr, [&](ir::Expr e) {
      return e == axis ? static_cast<double>(position) : number_of(e, 0);
    });
    const double result = actual[static_cast<size_t>(position - kBegin)];
    EXPECT_TRUE(result == expected || (std::isnan(result) && std::isnan(expected)))
        << position << ": " << result << ", not " << expected;
  }
}

TEST(Tape, GivesWhatEvaluationGives) {
  ir::ExprPool p;
  ir::Expr n = p.symbol("n"), i = p.axis("i", n), k = p.axis("k", p.integer(3));
  auto read = [&](int64_t value, std::vector<ir::Expr> index) {
    return p.read(value, DType::Float32, std::move(index));
  };
  ir::Expr x = read(0, {i, p.floordiv(i, p.integer(2))}), y = read(1, {p.add(i, n)});
  ir::Expr gathered = read(2, {p.cast(DType::Int64, read(3, {i}))});
  ir::Expr leaf = p.leaf(ir::LeafKind::Result, 5, DType::Float32);
  ir::Expr exp = p.make(ir::ExprOp::Exp, {p.sub(x, leaf)});
  const std::vector<ir::Expr> table = {
      p.number(2.5, DType::Float32),
      i,
      p.mul(exp, p.add(exp, y)),
      p.make(ir::ExprOp::Max, {x, y}),
      p.make(ir::ExprOp::Min, {x, gathered}),
      p.select(p.make(ir::ExprOp::Less, {x, y}), p.div(x, y), gathered),
      p.cast(DType::Int32, y),
      p.make(ir::ExprOp::IsNaN, {p.make(ir::ExprOp::Log, {x})}),
      p.add(x, p.reduce(ir::Reduction::Sum, k, p.mul(read(4, {i, k}), read(5, {k, i})))),
  };
  for (ir::Expr expr : table) {
    cascade::Tape tape(expr);
    cascade::Tape moved(std::move(tape));
    for (int seed = 0; seed < 40; ++seed) {
      const auto environment = [&](ir::Expr e) { return number_of(e, seed); };
      const double expected = evaluate(expr, environment), actual = moved.run(environment);
      EXPECT_TRUE(actual == expected || (std::isnan(actual) && std::isnan(expected)))
          << to_string(p, expr) << ", seed " << seed << ": " << actual << ", not " << expected;
    }
    expect_equal_positions(expr, moved, i);
  }
}

}  // namespace
}  // namespace redfuser
