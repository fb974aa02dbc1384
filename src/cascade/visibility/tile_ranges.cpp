#include "cascade/visibility/tile_ranges.h"

#include <fmt/format.h>

namespace redfuser::cascade {
namespace {

using Kind = IndexCondition::Kind;

TileCorner corner(ir::ExprPool& pool, ir::Expr axis) {
  return {axis, pool.shared_axis(fmt::format("first of {}", axis->integer), axis->extent()),
          pool.shared_axis(fmt::format("last of {}", axis->integer), axis->extent())};
}

// Whether some element of the tile may fulfil the condition.
ir::Expr possible(ir::ExprPool& pool, const IndexBounds& bounds, const IndexCondition& condition) {
  if (condition.kind == Kind::Opaque) {
    return bounds.varies(condition.expr) ? pool.boolean(true) : condition.expr;
  }
  if (condition.kind == Kind::NonNegative) {
    const auto found = bounds.of(condition.expr);
    if (!found) return pool.boolean(true);
    return pool.make(ir::ExprOp::LessEqual, {pool.integer(0), found->high});
  }
  const bool all = condition.kind == Kind::All;
  ir::Expr result = pool.boolean(all);
  for (const IndexCondition& part : condition.parts) {
    result =
        pool.make(all ? ir::ExprOp::And : ir::ExprOp::Or, {result, possible(pool, bounds, part)});
  }
  return result;
}

}  // namespace

TileRanges tile_ranges(ir::ExprPool& pool, ir::Expr visible, const std::vector<ir::Expr>& rows,
                       ir::Expr key) {
  TileRanges result{};
  for (ir::Expr row : rows) result.rows.push_back(corner(pool, row));
  result.key = corner(pool, key);
  std::vector<TileCorner> corners = result.rows;
  corners.push_back(result.key);
  const IndexBounds bounds(pool, corners);
  const IndexCondition condition = index_condition(pool, visible);
  result.may = possible(pool, bounds, condition);
  ir::Expr hidden = possible(pool, bounds, negation(pool, condition));
  result.full = hidden->is_constant() ? pool.boolean(hidden->integer == 0)
                                      : pool.make(ir::ExprOp::Not, {hidden});
  result.visible = key_ranges(pool, condition, bounds, key);
  return result;
}

}  // namespace redfuser::cascade
