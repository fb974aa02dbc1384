// Expressions that share their parts, and those that nest deep: what walks over them takes time in
// proportion to their distinct nodes, and little of the stack. The trees of most cases here have
// 2^64 nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "cascade/algebra/algebra.h"
#include "cascade/algebra/sign.h"
#include "cpu/tile/specialize.h"
#include "ir/contraction.h"
#include "ir/depth.h"
#include "ir/polynomial.h"

namespace redfuser {
namespace {

constexpr DType F = DType::Float32;
constexpr int kLevels = 64;

// op(e, e), and again of that.
Expr doubled(ExprPool& pool, ExprOp op, Expr e, int levels = kLevels) {
  for (int i = 0; i < levels; ++i) e = pool.make(op, {e, e});
  return e;
}

TEST(Depth, ExtentOfWhatIsShared) {
  ExprPool pool;
  const ExprExtent extent = expr_extent(doubled(pool, ExprOp::Add, pool.read(0, F, {}), 10));
  EXPECT_EQ(extent.depth, 11u);
  EXPECT_EQ(extent.size, 2047);
  EXPECT_TRUE(extent.fits());
  EXPECT_FALSE(expr_extent(doubled(pool, ExprOp::Add, pool.read(0, F, {}))).fits());
}

TEST(Depth, PoolsRefuseExpressionsThatNestTooDeep) {
  ExprPool pool;
  Expr e = pool.read(0, F, {});
  for (uint32_t i = 1; i < kMaxExprDepth; ++i) e = pool.make(ExprOp::Sin, {e});
  EXPECT_EQ(expr_extent(e).depth, kMaxExprDepth);
  EXPECT_THROW(pool.make(ExprOp::Sin, {e}), ExprTooDeep);
  EXPECT_EQ(pool.substitute(e, {{pool.read(0, F, {}), pool.number(0, F)}})->op, ExprOp::Constant);
}

TEST(Depth, VisitsEachNodeOnceChildrenFirst) {
  ExprPool pool;
  std::vector<Expr> seen;
  visit(doubled(pool, ExprOp::Mul, pool.read(0, F, {})), [&](Expr e) { seen.push_back(e); });
  ASSERT_EQ(seen.size(), kLevels + 1u);
  for (size_t i = 1; i < seen.size(); ++i) EXPECT_EQ(seen[i]->args[0], seen[i - 1]);
}

TEST(Shared, SizesAreEvaluatedOnce) {
  ExprPool pool;
  Expr n = pool.symbol("n"), e = n;
  for (int i = 0; i < kLevels; ++i) {
    e = pool.make(ExprOp::Max, {pool.floordiv(e, pool.integer(3)), pool.make(ExprOp::Min, {e, n})});
  }
  const int64_t symbols[] = {7};
  EXPECT_EQ(evaluate_size(e, symbols), 7);
}

TEST(Shared, PowersOfSumsStayProducts) {
  ExprPool pool;
  const Expr sum = pool.add(pool.read(0, DType::Int64, {}), pool.read(1, DType::Int64, {}));
  const Expr power = doubled(pool, ExprOp::Mul, sum);
  EXPECT_TRUE(to_polynomial(power).size() == 1);
  EXPECT_TRUE(pool.sub(power, power)->is_constant(0));
  EXPECT_EQ(evaluate(doubled(pool, ExprOp::Mul, sum, 20), [](Expr) { return 0.5; }), 1);
}

TEST(Shared, RangesOfIndices) {
  ExprPool pool;
  const Expr axis = pool.axis("i", pool.integer(5)), read = pool.read(0, DType::Int32, {axis});
  const Expr sum = doubled(pool, ExprOp::Min, pool.make(ExprOp::Sub, {read, read}));
  EXPECT_LE(cpu::range_of(doubled(pool, ExprOp::Sub, sum)).low, 0);
}

// Σ over j of what the earlier result m and the element x make.
struct Stages {
  ExprPool pool;
  Expr stream = pool.axis("j", pool.symbol("n"));
  Expr x = pool.read(0, F, {stream});
  std::vector<Stage> stages{{Reduction::Max, x, {}, 1, F, -1}};
  Expr m = pool.leaf(LeafKind::Result, 0, F);
  StageScope scope{pool, stream, stages, {}};
};

TEST(Shared, SumsOfSumsCollect) {
  Stages s;
  const auto found = decompose(s.scope, doubled(s.pool, ExprOp::Add, s.pool.mul(s.x, s.m)));
  const auto* terms = std::get_if<std::vector<Term>>(&found);
  ASSERT_NE(terms, nullptr);
  ASSERT_EQ(terms->size(), 1u);
  EXPECT_EQ(terms->front().coefficient, std::ldexp(1.0, kLevels));
}

// Each expands to 2^64 terms or factors: refused, or kept whole, at once.
TEST(Shared, ExpansionsAreBounded) {
  Stages s;
  ExprPool& pool = s.pool;
  const Expr sum = pool.add(s.x, s.m), product = pool.mul(s.x, s.m);
  Expr choice = product;
  for (int i = 0; i < kLevels; ++i) {
    const Expr test = pool.make(ExprOp::Less, {pool.read(i + 1, F, {s.stream}), pool.number(0, F)});
    choice = pool.make(ExprOp::Exp, {pool.select(test, choice, pool.mul(choice, s.m))});
  }
  for (Expr body :
       {doubled(pool, ExprOp::Mul, sum), doubled(pool, ExprOp::Mul, product),
        doubled(pool, ExprOp::Sub, product), choice, pool.mul(s.m, doubled(pool, ExprOp::Mul, s.x)),
        pool.make(ExprOp::Exp, {doubled(pool, ExprOp::Add, sum)})}) {
    const auto found = decompose(s.scope, body);
    if (const auto* refusal = std::get_if<Refusal>(&found)) {
      EXPECT_NE(refusal->reason, "");
    } else {
      EXPECT_LE(std::get<std::vector<Term>>(found).size(), 32u);
    }
  }
}

TEST(Shared, SignsAndContractions) {
  Stages s;
  ExprPool& pool = s.pool;
  const Expr positive = pool.make(ExprOp::Exp, {s.x});
  EXPECT_EQ(sign_of(s.scope, doubled(pool, ExprOp::Add, positive)), Sign::Positive);
  EXPECT_EQ(sign_of(s.scope, doubled(pool, ExprOp::Max, pool.add(s.x, positive))), Sign::Unknown);
  EXPECT_FALSE(
      as_contraction(pool, pool.reduce(Reduction::Sum, s.stream, doubled(pool, ExprOp::Mul, s.x))));
}

}  // namespace
}  // namespace redfuser
