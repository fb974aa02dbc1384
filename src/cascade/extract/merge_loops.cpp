#include "cascade/extract/merge_loops.h"

#include <vector>

#include "ir/contraction.h"

namespace redfuser::cascade {
namespace {

bool is_producer(ir::ExprPool& pool, ir::Expr inner, ir::Expr around) {
  const auto contraction = ir::as_contraction(pool, inner);
  return contraction && contraction->a->depends_on(around) != contraction->b->depends_on(around);
}

bool joins(ir::ExprPool& pool, ir::Expr outer, ir::Expr inner) {
  return inner->op == ir::ExprOp::Reduce && inner->reduction == outer->reduction &&
         inner->dtype == outer->dtype && !inner->extent()->depends_on(outer->bound_axis()) &&
         !is_producer(pool, inner, outer->bound_axis());
}

}  // namespace

ir::Expr merge_loops(ir::ExprPool& pool, ir::Expr root, Axes axes) {
  return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Reduce || picks_element(e->reduction)) return nullptr;
    std::vector<ir::Expr> chain = {e};
    while (joins(pool, chain.back(), chain.back()->body())) chain.push_back(chain.back()->body());
    if (chain.size() == 1) return nullptr;
    ir::Expr size = pool.integer(1);
    for (ir::Expr reduce : chain) size = pool.mul(size, reduce->extent());
    ir::Expr merged = cascade_axis(pool, axes, "l", size), inner = pool.integer(1);
    std::vector<std::pair<ir::Expr, ir::Expr>> map;
    for (auto reduce = chain.rbegin(); reduce != chain.rend(); ++reduce) {
      ir::Expr extent = (*reduce)->extent(), position = pool.floordiv(merged, inner);
      const bool outermost = std::next(reduce) == chain.rend();
      map.emplace_back((*reduce)->bound_axis(),
                       outermost ? position : pool.floormod(position, extent));
      inner = pool.mul(inner, extent);
    }
    ir::Expr body = pool.substitute(merge_loops(pool, chain.back()->body(), axes), map);
    return pool.reduce(e->reduction, merged, body);
  });
}

}  // namespace redfuser::cascade
