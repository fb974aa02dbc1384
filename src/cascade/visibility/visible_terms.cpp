#include "cascade/visibility/visible_terms.h"

#include <vector>

#include "cascade/visibility/hidden_elements.h"
#include "cascade/visibility/key_ranges.h"

namespace redfuser::cascade {
namespace {

using Kind = IndexCondition::Kind;

// Where a term is not the identity, whatever its operands are.
IndexCondition visible(ir::ExprPool& pool, ir::Reduction reduction, ir::Expr term) {
  term = term->op == ir::ExprOp::Cast && is_float(term->dtype) ? term->args[0] : term;
  if (term->is_constant()) {
    const bool hidden = identity_condition(pool, reduction, term)->is_constant(1);
    return {hidden ? Kind::Any : Kind::All};
  }
  if (term->op != ir::ExprOp::Select) return {Kind::All};
  const auto side = [&](bool wanted, ir::Expr value) {
    return IndexCondition{
        Kind::All, {index_condition(pool, term->args[0], wanted), visible(pool, reduction, value)}};
  };
  return {Kind::Any, {side(true, term->args[1]), side(false, term->args[2])}};
}

// The outermost axis of a reduction, those of reductions directly inside of it, and the term.
struct Nest {
  ir::Expr axis;
  std::vector<TileCorner> inner;
  ir::Expr term;
};
Nest nest_of(ir::ExprPool& pool, ir::Expr reduce) {
  Nest nest{reduce->bound_axis(), {}, reduce->body()};
  while (nest.term->op == ir::ExprOp::Reduce && nest.term->reduction == reduce->reduction &&
         nest.term->dtype == reduce->dtype) {
    ir::Expr axis = nest.term->bound_axis();
    nest.inner.push_back({axis, pool.integer(0), pool.sub(axis->extent(), pool.integer(1))});
    nest.term = nest.term->body();
  }
  return nest;
}

ir::Expr over_range(ir::ExprPool& pool, ir::Expr reduce) {
  const Nest nest = nest_of(pool, reduce);
  const IndexBounds bounds(pool, nest.inner);
  const auto ranges =
      key_ranges(pool, visible(pool, reduce->reduction, nest.term), bounds, nest.axis);
  if (ranges.size() != 1) return nullptr;
  const KeyRange& range = ranges[0];
  if (!range.begin->has_read && !range.end->has_read) return nullptr;
  ir::Expr count = pool.make(ir::ExprOp::Max, {pool.sub(range.end, range.begin), pool.integer(0)});
  ir::Expr place = pool.axis("j", count);
  ir::Expr body = pool.substitute(reduce->body(), {{nest.axis, pool.add(range.begin, place)}});
  return pool.reduce(reduce->reduction, place, body);
}

}  // namespace

ir::Expr visible_terms(ir::ExprPool& pool, ir::Expr root) {
  return pool.rewrite(root, [&](ir::Expr e) -> ir::Expr {
    if (e->op != ir::ExprOp::Reduce || picks_element(e->reduction)) return nullptr;
    ir::Expr found = e->extent()->has_read ? nullptr : over_range(pool, e);
    if (found == nullptr) return nullptr;
    ir::Expr body = visible_terms(pool, found->body());
    return pool.reduce(found->reduction, found->bound_axis(), body);
  });
}

}  // namespace redfuser::cascade
