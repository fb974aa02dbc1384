// Pools that extend others, and graphs that are cloned by them.
#include <gtest/gtest.h>

#include "ir/graph.h"
#include "redfuser/error.h"

namespace redfuser {
namespace {

TEST(ExprPool, ExtensionsShareWhatTheirBaseHas) {
  auto base = std::make_shared<ir::ExprPool>();
  ir::Expr n = base->symbol("n"), two_n = base->mul(n, base->integer(2));
  ir::Expr axis = base->shared_axis("i0", n);
  ir::ExprPool pool(base);
  EXPECT_EQ(pool.symbol("n"), n);
  EXPECT_EQ(pool.mul(pool.integer(2), pool.symbol("n")), two_n);
  EXPECT_EQ(pool.shared_axis("i0", n), axis);
  EXPECT_EQ(pool.size(), base->size());
  EXPECT_EQ(pool.axis_name(axis), "i0");
}

TEST(ExprPool, ExtensionsNumberOnFromTheirBase) {
  auto base = std::make_shared<ir::ExprPool>();
  ir::Expr n = base->symbol("n"), axis = base->axis("a", n);
  const size_t before = base->size();
  ir::ExprPool pool(base), other(base);
  ir::Expr m = pool.symbol("m"), fresh = pool.fresh_symbol("n");
  EXPECT_EQ(m->id, before);
  EXPECT_EQ(m->integer, 1);
  EXPECT_EQ(pool.symbol_name(fresh), "n_1");
  EXPECT_EQ(pool.axis("b", m)->integer, axis->integer + 1);
  EXPECT_EQ(to_string(pool, pool.add(n, m)), "n + m");
  EXPECT_EQ(base->size(), before);
  EXPECT_EQ(other.size(), before);
  EXPECT_EQ(other.fresh_symbol("m")->integer, 1);
}

// Their numbers would be those of the extension's own.
TEST(ExprPool, ExtendedPoolsTakeNoNewExpressions) {
  auto base = std::make_shared<ir::ExprPool>();
  ir::Expr n = base->symbol("n");
  const ir::ExprPool pool(base);
  EXPECT_EQ(base->symbol("n"), n);
  EXPECT_THROW(base->symbol("m"), InternalError);
}

// Walks keep every node that they met, also where there are many.
TEST(ExprPool, WalksMeetEveryNodeOnce) {
  ir::ExprPool pool;
  const ir::Expr x = pool.leaf(ir::LeafKind::State, 0, DType::Float32);
  const ir::Expr y = pool.leaf(ir::LeafKind::State, 1, DType::Float32);
  const auto power = [&](ir::Expr base, int count) {
    for (int i = 0; i < count; ++i) base = pool.mul(base, base);  // a tree of 2^count leaves
    return base;
  };
  for (const int count : {0, 1, 15, 16, 31, 33, 200}) {
    int met = 0;
    visit(power(x, count), [&](ir::Expr) { ++met; });
    EXPECT_EQ(met, count + 1);
    EXPECT_EQ(pool.substitute(power(x, count), {{x, y}}), power(y, count));
  }
}

TEST(Graph, ClonesLeaveTheGraphAsItIs) {
  ir::Graph graph;
  graph.pool = std::make_shared<ir::ExprPool>();
  graph.inputs.push_back(graph.add_value("x", DType::Float32));
  graph.values[0].shape = {graph.pool->symbol("n")};
  const std::string text = to_string(graph);
  const size_t size = graph.pool->size();
  ir::Graph copy = clone(graph);
  copy.values[0].shape[0] = copy.pool->add(copy.values[0].shape[0], copy.pool->integer(7));
  EXPECT_EQ(to_string(graph), text);
  EXPECT_EQ(graph.pool->size(), size);
  EXPECT_NE(to_string(copy), text);
}

}  // namespace
}  // namespace redfuser
