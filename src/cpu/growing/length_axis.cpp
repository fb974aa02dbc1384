#include "cpu/growing/length_axis.h"

#include <algorithm>

namespace redfuser::cpu {

ir::Expr length_symbol(ir::ExprPool& pool) { return pool.symbol("length"); }

LengthAxis::LengthAxis(ir::ExprPool& pool, const GrowingSizes& sizes)
    : pool_(pool),
      most_(sizes.length_of(sizes.most)),
      axis_(pool.axis("length", pool.integer(most_ - sizes.least + 1))) {
  placed_[length_symbol(pool)] = pool.add(axis_, pool.integer(sizes.least));
}

ir::Expr LengthAxis::placed(ir::Expr expr) {
  return pool_.rewrite(expr, [&](ir::Expr e) -> ir::Expr {
    if (e->op == ir::ExprOp::Axis) return grown(e);
    const auto found = placed_.find(e);
    return found == placed_.end() ? nullptr : found->second;
  });
}

void LengthAxis::place(std::vector<ir::Expr>& expressions) {
  for (ir::Expr& expr : expressions) expr = placed(expr);
}

ir::Expr LengthAxis::extent(ir::Expr placed) const {
  const auto found = extents_.find(placed);
  return found == extents_.end() ? nullptr : found->second;
}

bool LengthAxis::all_grown_in(std::span<const ir::Expr> axes) const {
  return std::all_of(extents_.begin(), extents_.end(), [&](const auto& grown) {
    return std::find(axes.begin(), axes.end(), grown.first) != axes.end();
  });
}

ir::Expr LengthAxis::grown(ir::Expr axis) {
  const ir::Expr extent = axis->extent();
  if (extent->is_constant()) return axis;
  ir::Expr& grown = placed_[axis];
  if (grown == nullptr) {
    const size_t length[] = {static_cast<size_t>(length_symbol(pool_)->integer)};
    grown = pool_.axis("g", pool_.integer(greatest_size(extent, {most_}, length)));
    extents_[grown] = extent;
  }
  return grown;
}

}  // namespace redfuser::cpu
