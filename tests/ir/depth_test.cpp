// Expressions that share subexpressions, and those that nest deep: walks over them take time in
// proportion to their distinct nodes, and little of the stack. The trees of most cases here have
// 2^64 nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "cascade/algebra/algebra.h"
#include "cascade/algebra/sign.h"
#include "cpu/tile/interval.h"
#include "ir/contraction.h"
#include "ir/depth.h"
#include "ir/evaluate.h"
#include "ir/polynomial.h"
#include "ir/ranges.h"

namespace redfuser {
namespace {

constexpr DType F = DType::Float32;
constexpr int kLevels = 64;

// op(e, e), and again of that.
ir::Expr doubled(ir::ExprPool& pool, ir::ExprOp op, ir::Expr e, int levels = kLevels) {
  for (int i = 0; i < levels; ++i) e = pool.make(op, {e, e});
  return e;
}

TEST(Depth, ExtentOfWhatIsShared) {
  ir::ExprPool pool;
  const ir::ExprExtent extent =
      expr_extent(doubled(pool, ir::ExprOp::Add, pool.read(0, F, {}), 10));
  EXPECT_EQ(extent.depth, 11u);
  EXPECT_EQ(extent.size, 2047);
  EXPECT_TRUE(extent.fits());
  EXPECT_FALSE(expr_extent(doubled(pool, ir::ExprOp::Add, pool.read(0, F, {}))).fits());
}

TEST(Depth, PoolsRefuseExpressionsThatNestTooDeep) {
  ir::ExprPool pool;
  ir::Expr e = pool.read(0, F, {});
  for (uint32_t i = 1; i < ir::kMaxExprDepth; ++i) e = pool.make(ir::ExprOp::Sin, {e});
  EXPECT_EQ(expr_extent(e).depth, ir::kMaxExprDepth);
  EXPECT_THROW(pool.make(ir::ExprOp::Sin, {e}), ir::ExprTooDeep);
  EXPECT_EQ(pool.substitute(e, {{pool.read(0, F, {}), pool.number(0, F)}})->op,
            ir::ExprOp::Constant);
}

TEST(Depth, VisitsEachNodeOnceChildrenFirst) {
  ir::ExprPool pool;
  std::vector<ir::Expr> seen;
  visit(doubled(pool, ir::ExprOp::Mul, pool.read(0, F, {})),
        [&](ir::Expr e) { seen.push_back(e); });
  ASSERT_EQ(seen.size(), kLevels + 1u);
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i]->args[0], seen[i - 1]);
}

TEST(Shared, SizesAreEvaluatedOnce) {
  ir::ExprPool pool;
  ir::Expr n = pool.symbol("n"), e = n;
  for (int i = 0; i < kLevels; ++i) {
    e = pool.make(ir::ExprOp::Max,
                  {pool.floordiv(e, pool.integer(3)), pool.make(ir::ExprOp::Min, {e, n})});
  }
  const int64_t symbols[] = {7};
  EXPECT_EQ(evaluate_size(e, symbols), 7);
}

TEST(Shared, PowersOfSumsStayProducts) {
  ir::ExprPool pool;
  const ir::Expr sum = pool.add(pool.read(0, DType::Int64, {}), pool.read(1, DType::Int64, {}));
  const ir::Expr power = doubled(pool, ir::ExprOp::Mul, sum);
  EXPECT_TRUE(to_polynomial(power).size() == 1);
  EXPECT_TRUE(pool.sub(power, power)->is_constant(0));
  EXPECT_EQ(evaluate(doubled(pool, ir::ExprOp::Mul, sum, 20), [](ir::Expr) { return 0.5; }), 1);
}

TEST(Shared, RangesOfIndices) {
  ir::ExprPool pool;
  const ir::Expr axis = pool.axis("i", pool.integer(5)), read = pool.read(0, DType::Int32, {axis});
  const ir::Expr sum = doubled(pool, ir::ExprOp::Min, pool.make(ir::ExprOp::Sub, {read, read}));
  EXPECT_LE(cpu::interval_of(doubled(pool, ir::ExprOp::Sub, sum)).low, 0);
}

// Σ over j of a function of the earlier result m and the element x.
struct Stages {
  ir::ExprPool pool;
  ir::Expr stream = pool.axis("j", pool.symbol("n"));
  ir::Expr x = pool.read(0, F, {stream});
  std::vector<cascade::Stage> stages{{ir::Reduction::Max, x, {}, 1, F, -1}};
  ir::Expr m = pool.leaf(ir::LeafKind::Result, 0, F);
  cascade::StageScope scope{pool, stream, stages, {}};
};

TEST(Shared, SumsOfSumsCollect) {
  Stages s;
  const auto found = decompose(s.scope, doubled(s.pool, ir::ExprOp::Add, s.pool.mul(s.x, s.m)));
  const auto* terms = std::get_if<std::vector<cascade::Term>>(&found);
  ASSERT_NE(terms, nullptr);
  ASSERT_EQ(terms->size(), 1u);
  EXPECT_EQ(terms->front().coefficient, std::ldexp(1.0, kLevels));
}

// Each expands to 2^64 terms or factors: refused, or kept whole, at once.
TEST(Shared, ExpansionsAreBounded) {
  Stages s;
  ir::ExprPool& pool = s.pool;
  const ir::Expr sum = pool.add(s.x, s.m), product = pool.mul(s.x, s.m);
  ir::Expr choice = product;
  for (int i = 0; i < kLevels; ++i) {
    const ir::Expr test =
        pool.make(ir::ExprOp::Less, {pool.read(i + 1, F, {s.stream}), pool.number(0, F)});
    choice = pool.make(ir::ExprOp::Exp, {pool.select(test, choice, pool.mul(choice, s.m))});
  }
  for (ir::Expr body :
       {doubled(pool, ir::ExprOp::Mul, sum), doubled(pool, ir::ExprOp::Mul, product),
        doubled(pool, ir::ExprOp::Sub, product), choice,
        pool.mul(s.m, doubled(pool, ir::ExprOp::Mul, s.x)),
        pool.make(ir::ExprOp::Exp, {doubled(pool, ir::ExprOp::Add, sum)})}) {
    const auto found = decompose(s.scope, body);
    if (const auto* refusal = std::get_if<cascade::Refusal>(&found)) {
      EXPECT_NE(refusal->reason, "");
    } else {
      EXPECT_LE(std::get<std::vector<cascade::Term>>(found).size(), 32u);
    }
  }
}

TEST(Shared, SignsAndContractions) {
  Stages s;
  ir::ExprPool& pool = s.pool;
  const ir::Expr positive = pool.make(ir::ExprOp::Exp, {s.x});
  EXPECT_EQ(sign_of(s.scope, doubled(pool, ir::ExprOp::Add, positive)), cascade::Sign::Positive);
  EXPECT_EQ(sign_of(s.scope, doubled(pool, ir::ExprOp::Max, pool.add(s.x, positive))),
            cascade::Sign::Unknown);
  EXPECT_FALSE(as_contraction(
      pool, pool.reduce(ir::Reduction::Sum, s.stream, doubled(pool, ir::ExprOp::Mul, s.x))));
}

}  // namespace
}  // namespace redfuser
