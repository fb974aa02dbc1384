// Conditions over indices in one form: sums and alternatives of f >= 0.
//
// Every comparison of integers becomes f >= 0 of a polynomial f over Int64; a != b is two of them.
// Non-linear functions of indices are replaced by exact conditions:
//
//   c - |x| >= 0              c - x >= 0 and c + x >= 0
//   |x| - c >= 0              x - c >= 0 or -x - c >= 0
//   c - max(a, b) >= 0        c - a >= 0 and c - b >= 0
//   max(a, b) - c >= 0        a - c >= 0 or b - c >= 0
//   c - x² >= 0               |x| <= ⌊√c⌋
//   x² - c >= 0               |x| >= ⌈√c⌉
//   select(p, a, b) - c >= 0  p and a - c >= 0, or not p and b - c >= 0
//
// A comparison of an index, as a float that has its value, with a float x is one with ⌊x⌋ or ⌈x⌉:
//
//   float(i) <= x             x is not NaN and i <= ⌊x⌋
#pragma once

#include <vector>

#include "ir/expr.h"

namespace redfuser::cascade {

struct IndexCondition {
  enum class Kind { All, Any, NonNegative, Opaque };
  Kind kind;
  std::vector<IndexCondition> parts;  // All, Any
  ir::Expr expr = nullptr;            // NonNegative: f, Int64; Opaque: what has no such form, Bool
};

// The form of `e` (Bool), or of its negation.
IndexCondition index_condition(ir::ExprPool& pool, ir::Expr e, bool wanted = true);

// The same condition, negated.
IndexCondition negation(ir::ExprPool& pool, const IndexCondition& condition);

}  // namespace redfuser::cascade
