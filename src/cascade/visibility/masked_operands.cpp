#include "cascade/visibility/masked_operands.h"

#include <algorithm>
#include <cmath>

#include "cascade/visibility/magnitude.h"

namespace redfuser::cascade {
namespace {

// Holds a mask, so that it may be 0 or infinite where that hides elements.
bool masked(ir::Expr root) {
  bool found = false;
  visit(
      root,
      [&](ir::Expr e) {
        const bool cast = e->op == ir::ExprOp::Cast && e->args[0]->dtype == DType::Bool;
        if (e->op != ir::ExprOp::Select && !cast) return;
        found |= !e->args[0]->free_axes.empty() && !e->args[0]->has_leaf;
      },
      false);
  return found;
}

MaskedOperands::Bound bound_of(ir::ExprPool& pool, ir::Expr e, bool above_only) {
  const auto number = [&](double value) { return pool.number(value, DType::Float64); };
  const KnownBound known = [&](ir::Expr part) -> ir::Expr {
    if (part->op == ir::ExprOp::Leaf) return number(0);
    if (part->op == ir::ExprOp::Read && is_float(part->dtype))
      return largest_of(pool, part->integer);
    const bool infinite = part->is_constant() && is_float(part->dtype) && std::isinf(part->number);
    return infinite ? number(0) : nullptr;
  };
  constexpr double kLargeFloat = 0x1p127, kLargeDouble = 0x1p1023;
  return {above_only ? upper_bound(pool, e, known) : magnitude(pool, e, known),
          e->dtype == DType::Float64 ? kLargeDouble : kLargeFloat};
}

void add_operation(ir::ExprPool& pool, ir::Reduction reduction, ir::Expr e,
                   MaskedOperands& operands) {
  const bool sum = e->op == ir::ExprOp::Add || e->op == ir::ExprOp::Sub;
  const bool quotient = e->op == ir::ExprOp::Div;
  if (!is_float(e->dtype) || !(sum || quotient || e->op == ir::ExprOp::Mul)) return;
  for (size_t i = 0; i < (quotient ? 1 : e->args.size()); ++i) {
    if (!masked(e->args[i])) continue;
    for (size_t other = 0; other < e->args.size(); ++other) {
      ir::Expr x = e->args[other];
      if (other == i || !x->has_read) continue;
      add_reads(x, operands);
      const bool above_only = e->op == ir::ExprOp::Add && reduction != ir::Reduction::Min;
      if (sum) operands.bounds.push_back(bound_of(pool, x, above_only));
      operands.decidable &= !quotient;
    }
  }
}

}  // namespace

ir::Expr largest_of(ir::ExprPool& pool, int64_t value) {
  return pool.leaf(ir::LeafKind::Result, value, DType::Float64);
}

void add_masked_operands(ir::ExprPool& pool, ir::Reduction reduction, ir::Expr lift,
                         MaskedOperands& operands) {
  visit(
      lift, [&](ir::Expr e) { add_operation(pool, reduction, e, operands); }, false);
}

void add_reads(ir::Expr e, MaskedOperands& operands) {
  if (!is_float(e->dtype)) return;
  if (e->op != ir::ExprOp::Read) {
    for (ir::Expr arg : e->args) add_reads(arg, operands);
    return;
  }
  std::vector<int64_t>& values = operands.values;
  operands.decidable &= e->integer >= 0;
  if (std::find(values.begin(), values.end(), e->integer) == values.end()) {
    values.push_back(e->integer);
  }
}

}  // namespace redfuser::cascade
