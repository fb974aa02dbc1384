#include "codegen/elementwise/aligned_accesses.h"

#include <algorithm>

#include "ir/polynomial.h"

namespace redfuser::codegen {

std::vector<ir::Expr> offset_units(ir::ExprPool& pool, ir::Expr offset) {
  std::vector<ir::Expr> units;
  for (auto& [monomial, coefficient] : to_polynomial(offset)) {
    ir::Expr unit = pool.integer(coefficient);
    for (ir::Expr atom : monomial) {
      if (is_size(atom)) unit = pool.mul(unit, atom);
    }
    if (std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
  }
  return units;
}

ir::Expr adjacent_from(ir::ExprPool& pool, ir::Expr offset, ir::Expr axis) {
  const auto affine = affine_in(pool, offset, axis);
  const bool adjacent = affine && affine->stride->is_constant(1) && !affine->base->depends_on(axis);
  return adjacent ? affine->base : nullptr;
}

ir::Expr adjacent_from(ir::ExprPool& pool, ir::Expr offset, const std::vector<ir::Expr>& axes) {
  ir::Expr elements = pool.integer(1);
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i]->op != ir::ExprOp::Axis) return nullptr;
    const auto affine = affine_in(pool, offset, axes[i]);
    if (!affine || affine->stride != elements || affine->base->depends_on(axes[i])) return nullptr;
    offset = affine->base;
    elements = pool.mul(elements, axes[i]->extent());
  }
  return axes.empty() ? nullptr : offset;
}

void AlignedAccesses::add(const std::string& buffer) {
  if (std::find(buffers_.begin(), buffers_.end(), buffer) == buffers_.end()) {
    buffers_.push_back(buffer);
  }
}

void AlignedAccesses::require(const std::vector<ir::Expr>& units) {
  units_.insert(units_.end(), units.begin(), units.end());
}

void AlignedAccesses::add(const std::string& buffer, const std::vector<ir::Expr>& units) {
  add(buffer);
  require(units);
}

void AlignedAccesses::add(const std::string& buffer, ir::Expr base) {
  add(buffer, offset_units(kernel_.pool(), base));
}

void AlignedAccesses::add(const AlignedAccesses& others) {
  for (const std::string& buffer : others.buffers_) add(buffer);
  require(others.units_);
}

std::string AlignedAccesses::condition(ir::Expr points, int width) const {
  std::vector<ir::Expr> units = units_;
  units.push_back(points);
  return all_aligned(kernel_.multiples(units, width), buffers_);
}

}  // namespace redfuser::codegen
