// Running reductions: sums, products and extremes of the elements up to a row's own, found by the
// condition that hides the others.
//
//   y[i] = ⊕_l (l <= i ? x(l) : identity of ⊕)
//
// This is a prefix scan along i (Blelloch, "Prefix Sums and Their Applications", 1990): one
// operation per element where the written form takes one per pair of them.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace redfuser::cascade {

struct Running {
  ir::Expr reduce;   // the Reduce Sum, Prod, Max or Min
  ir::Expr axis;     // i, free in the reduction, of the extent of l
  ir::Expr element;  // x at l = i
  bool reverse;      // from the last element on: l >= i
  bool exclusive;    // without the element at i
};

// nullopt unless a Reduce is so hidden and its element depends on i by the condition alone.
std::optional<Running> running_reduction(ir::ExprPool& pool, ir::Expr reduce);

// The one reduction of a body if it is running; nullopt for other bodies, among them those of
// several reductions.
std::optional<Running> running_body(ir::ExprPool& pool, ir::Expr body);

}  // namespace redfuser::cascade
