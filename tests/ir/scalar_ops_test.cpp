// The claims of the table of scalar operations, on a grid of operands.
#include "ir/scalars/operations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "ir/scalars/reference.h"

namespace redfuser::ir {
namespace {

struct Row {
  ExprOp op;
  const char* name;
};

const std::vector<Row> kRows = {
#define RF_SCALAR_OP(NAME, REFERENCE, ...) {ExprOp::NAME, #NAME},
#include "ir/scalars/operations.def"
};

const std::vector<Row> kFunctions = {
#define RF_UNARY(NAME, REFERENCE, ...) {ExprOp::NAME, #NAME},
#include "ir/scalars/operations.def"
};

// Whole numbers and halves, where functions jump, and numbers between them.
std::vector<double> grid() {
  std::vector<double> result;
  for (int i = -32; i <= 32; ++i) result.push_back(i / 8.0);
  return result;
}

double value(ExprOp op, double x) { return unary(op, DType::Float64, x); }

TEST(ScalarOps, EveryRowIsFoundByItsOperation) {
  ASSERT_EQ(kRows.size(), std::size(kScalarOps));
  for (const Row& row : kRows) EXPECT_EQ(&scalar_op(row.op), &kScalarOps[&row - kRows.data()]);
  for (ExprOp op : {ExprOp::Read, ExprOp::Select, ExprOp::Cast, ExprOp::Reduce}) {
    EXPECT_EQ(&scalar_op(op), &kNoFacts);
  }
}

TEST(ScalarOps, EveryRowPrintsItsOwnText) {
  std::set<std::string_view> texts;
  for (const Row& row : kRows) {
    const ScalarOp& op = scalar_op(row.op);
    EXPECT_NE(op.name.empty(), op.infix.empty()) << row.name;
    EXPECT_TRUE(texts.insert(op.name.empty() ? op.infix : op.name).second) << row.name;
  }
}

TEST(ScalarOps, SignsAndBoundsHold) {
  for (const Row& row : kFunctions) {
    const ScalarOp& op = scalar_op(row.op);
    for (double x : grid()) {
      const double y = value(row.op, x);
      if (std::isnan(y)) continue;
      EXPECT_LE(std::abs(y), op.bound) << row.name << " of " << x;
      const double least = op.sign == ResultSign::Unknown ? -op.bound : 0;
      EXPECT_GE(y, least) << row.name << " of " << x;
      EXPECT_TRUE(op.sign != ResultSign::Positive || y != 0) << row.name << " of " << x;
      EXPECT_TRUE(!op.boolean || y == 0 || y == 1) << row.name << " of " << x;
    }
  }
}

TEST(ScalarOps, IncreasingFunctionsIncrease) {
  for (const Row& row : kFunctions) {
    if (!scalar_op(row.op).increasing) continue;
    double last = NAN;
    for (double x : grid()) {
      const double y = value(row.op, x);
      EXPECT_FALSE(y <= last) << row.name << " of " << x;
      last = y;
    }
  }
}

TEST(ScalarOps, FunctionsThatDoNotClaimToJumpAreContinuous) {
  constexpr double kStep = 1e-12, kPole = 1e6;
  for (const Row& row : kFunctions) {
    if (scalar_op(row.op).jumps) continue;
    for (double x : grid()) {
      const double below = value(row.op, x - kStep), above = value(row.op, x + kStep);
      if (!(std::abs(below) < kPole) || !(std::abs(above) < kPole)) continue;
      EXPECT_NEAR(below, above, 1e-3) << row.name << " of " << x;
    }
  }
}

}  // namespace
}  // namespace redfuser::ir
