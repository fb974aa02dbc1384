// Intervals of integers, and the rules by which the bounds of an operation follow from the bounds
// of its operands:
//
//   operation         low                         high
//   min(a, b)         min(low a, low b)           min(high a, high b)
//   max(a, b)         max(low a, low b)           max(high a, high b)
//   select(p, a, b)   min(low a, low b)           max(high a, high b)
//   a mod d, d > 0    0                           high d - 1, also high a if a >= 0
//   ⌊a/d⌋, d > 0      min ⌊low a/d⌋ over d        max ⌊high a/d⌋ over d
//
// Three kinds of bounds go by these rules: numbers (cpu/tile/interval.h), expressions over the
// corners of a tile (cascade/visibility/index_bounds.h) and, in proofs for every size, polynomials
// of sizes (ir/ranges.h). Sums, products and leaves are their own.
#pragma once

#include "ir/expr.h"

namespace redfuser::ir {

// Both ends are included.
template <typename Bound>
struct Interval {
  Bound low, high;
};

// Whether the table has a row for the operation.
constexpr bool has_interval_rule(ExprOp op) {
  return op == ExprOp::Min || op == ExprOp::Max || op == ExprOp::Select || op == ExprOp::FloorMod ||
         op == ExprOp::FloorDiv;
}

// The lower bound of an operation with `Operands`, a class with these members:
//
//   low(i), high(i)                    bounds of operand i
//   least(x, y), greatest(x, y)        of two lower bounds, and of two upper bounds
//   zero()                             a lower bound
//   unknown_low(), unknown_high()      the bounds of which nothing is known
//   positive(i)                        whether operand i is known to be at least 1
//   low_quotient(), high_quotient()    the rule of ⌊a/d⌋ for a divisor that is positive
//   remainder_below(x)                 the rule's upper bound of a mod d, given x >= d
template <typename Operands>
auto low_bound(ExprOp op, const Operands& of) {
  switch (op) {
    case ExprOp::Min:
      return of.least(of.low(0), of.low(1));
    case ExprOp::Max:
      return of.greatest(of.low(0), of.low(1));
    case ExprOp::Select:
      return of.least(of.low(1), of.low(2));
    case ExprOp::FloorMod:
      return of.positive(1) ? of.zero() : of.unknown_low();
    case ExprOp::FloorDiv:
      return of.positive(1) ? of.low_quotient() : of.unknown_low();
    default:
      return of.unknown_low();
  }
}

// The upper bound.
template <typename Operands>
auto high_bound(ExprOp op, const Operands& of) {
  switch (op) {
    case ExprOp::Min:
      return of.least(of.high(0), of.high(1));
    case ExprOp::Max:
      return of.greatest(of.high(0), of.high(1));
    case ExprOp::Select:
      return of.greatest(of.high(1), of.high(2));
    case ExprOp::FloorMod:
      return of.positive(1) ? of.remainder_below(of.high(1)) : of.unknown_high();
    case ExprOp::FloorDiv:
      return of.positive(1) ? of.high_quotient() : of.unknown_high();
    default:
      return of.unknown_high();
  }
}

}  // namespace redfuser::ir
