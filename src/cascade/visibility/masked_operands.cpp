#include "cascade/visibility/masked_operands.h"

#include <algorithm>
#include <cmath>

#include "cascade/visibility/magnitude.h"

namespace redfuser {
namespace {

// Holds a mask, so that it may be 0 or infinite where that hides elements.
bool masked(Expr root) {
  bool found = false;
  visit(
      root,
      [&](Expr e) {
        const bool cast = e->op == ExprOp::Cast && e->args[0]->dtype == DType::Bool;
        if (e->op != ExprOp::Select && !cast) return;
        found |= !e->args[0]->free_axes.empty() && !e->args[0]->has_leaf;
      },
      false);
  return found;
}

MaskedOperands::Bound bound_of(ExprPool& pool, Expr e, bool above_only) {
  const auto number = [&](double value) { return pool.number(value, DType::Float64); };
  const KnownBound known = [&](Expr part) -> Expr {
    if (part->op == ExprOp::Leaf) return number(0);
    if (part->op == ExprOp::Read && is_float(part->dtype)) return largest_of(pool, part->integer);
    const bool infinite = part->is_constant() && is_float(part->dtype) && std::isinf(part->number);
    return infinite ? number(0) : nullptr;
  };
  constexpr double kLargeFloat = 0x1p127, kLargeDouble = 0x1p1023;
  return {above_only ? upper_bound(pool, e, known) : magnitude(pool, e, known),
          e->dtype == DType::Float64 ? kLargeDouble : kLargeFloat};
}

void add_operation(ExprPool& pool, Reduction reduction, Expr e, MaskedOperands& operands) {
  const bool sum = e->op == ExprOp::Add || e->op == ExprOp::Sub;
  const bool quotient = e->op == ExprOp::Div;
  if (!is_float(e->dtype) || !(sum || quotient || e->op == ExprOp::Mul)) return;
  for (size_t i = 0; i < (quotient ? 1 : e->args.size()); ++i) {
    if (!masked(e->args[i])) continue;
    for (size_t other = 0; other < e->args.size(); ++other) {
      Expr x = e->args[other];
      if (other == i || !x->has_read) continue;
      add_reads(x, operands);
      const bool above_only = e->op == ExprOp::Add && reduction != Reduction::Min;
      if (sum) operands.bounds.push_back(bound_of(pool, x, above_only));
      operands.decidable &= !quotient;
    }
  }
}

}  // namespace

Expr largest_of(ExprPool& pool, int64_t value) {
  return pool.leaf(LeafKind::Result, value, DType::Float64);
}

void add_masked_operands(ExprPool& pool, Reduction reduction, Expr lift, MaskedOperands& operands) {
  visit(
      lift, [&](Expr e) { add_operation(pool, reduction, e, operands); }, false);
}

void add_reads(Expr e, MaskedOperands& operands) {
  if (!is_float(e->dtype)) return;
  if (e->op != ExprOp::Read) {
    for (Expr arg : e->args) add_reads(arg, operands);
    return;
  }
  std::vector<int64_t>& values = operands.values;
  operands.decidable &= e->integer >= 0;
  if (std::find(values.begin(), values.end(), e->integer) == values.end()) {
    values.push_back(e->integer);
  }
}

}  // namespace redfuser
