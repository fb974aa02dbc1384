// The condition under which an element of the streamed axis changes no accumulator of an attention
// cascade.
//
// An element is hidden where each lift is its reduction's identity: a maximum's lift is -inf, a
// sum's is 0. With s the score, c an expression of indices and small reads:
//
//   max  select(c, s, -inf)              = -inf          where not c
//   sum  exp(select(c, s, -inf) - m)     = 0             where not c, for m > -inf
//   max  s + select(c, 0, v)            <= v + max|s|    where not c
//   sum  exp(s + select(c, 0, v) - m)   <= exp(v + max|s| - m)
//
// A finite fill v hides an element only from a row whose state it can no longer change: the row's
// maximum is at least the bound, and the exponential of the difference underflows to 0. `settled`
// states this for the state of the elements folded so far. A fully masked row is not settled: its
// result in the graph depends on every element. `settled` is constant true where every row provably
// has a visible element with a score above the bound.
//
// Assumptions: streamed values and scores are finite; scores of operands wider than 16-bit floats
// are below 2^100 in magnitude; scores beside a fill by the lowest fp16 number, which stands for
// -inf, are below 2^14. Otherwise a kernel that skips hidden keys omits NaNs of the unfused graph.
// Target::exact_masks tests the assumptions on the device (mask_check.h).
#pragma once

#include <cmath>
#include <vector>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

struct MaskCondition {
  ir::Expr visible;  // Bool over axes, sizes and reads: elements where it is false are hidden
  // Bool over State and NewResult leaves of a row: true if hidden elements do not change it.
  ir::Expr settled;
  double largest_score = HUGE_VAL;  // assumed bound of the magnitudes of scores

  // Whether a kernel can skip keys that the mask hides from all rows of a tile: the mask can hide
  // keys, and hidden keys provably change no row.
  bool skips() const;
};

MaskCondition mask_condition(ir::ExprPool& pool, const AttentionSpec& form);

// `e` for visible elements: the conditions that make up `visible` are replaced by true.
ir::Expr where_visible(ir::ExprPool& pool, ir::Expr visible, ir::Expr e);

}  // namespace redfuser::codegen
