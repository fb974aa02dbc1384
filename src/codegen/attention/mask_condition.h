// When an element of the streamed axis leaves every accumulator of an attention cascade as it is.
//
// An element is hidden where each lift is its reduction's identity: a maximum's lift is -inf, a
// sum's is 0. With s the score, c an expression of indices and small reads:
//
//   max  select(c, s, -inf)              = -inf          where not c
//   sum  exp(select(c, s, -inf) - m)     = 0             where not c, for m > -inf
//   max  s + select(c, 0, v)            <= v + max|s|    where not c
//   sum  exp(s + select(c, 0, v) - m)   <= exp(v + max|s| - m)
//
// A finite fill v hides an element only from a row whose state it cannot change any more: the
// maximum is not below the bound, and the exponential of the difference underflows to 0. That is
// `settled`, to be tested on the state of the elements that were folded; a row that is hidden as a
// whole is not settled, and the graph's result for it needs every element. Where some element of
// every row is provably visible and its score provably above the bound, `settled` is true.
//
// Streamed values and scores are taken to be finite, and scores of operands wider than 16-bit
// floats to be below 2^100 in magnitude. The lowest half stands for -inf as a fill: scores of
// halves beside it are taken to be below 2^14. Where that does not hold, a kernel that skips hidden
// keys leaves out NaNs of the unfused graph; Target::exact_masks has it tested (mask_check.h).
#pragma once

#include <cmath>
#include <vector>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

struct MaskCondition {
  ir::Expr visible;  // Bool over axes, sizes and reads: elements where it is false are hidden
  // Bool over State and NewResult leaves of a row: true if hidden elements leave it as it is.
  ir::Expr settled;
  double largest_score = HUGE_VAL;  // what magnitudes of scores are taken to be at most

  // Keys that the mask hides from all of a tile's rows need no visit: there are such, and it is
  // proved that hidden keys leave the state of every row.
  bool skips() const;
};

MaskCondition mask_condition(ir::ExprPool& pool, const AttentionSpec& form);

// `e` for elements that are visible: the conditions of which `visible` is made are true.
ir::Expr where_visible(ir::ExprPool& pool, ir::Expr visible, ir::Expr e);

}  // namespace redfuser::codegen
