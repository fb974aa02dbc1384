// Bounds on the nesting and on the written-out size of expressions, for recursive walks.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "ir/expr.h"

namespace redfuser::ir {

// Expressions nest at most so deep, so that a recursive walk fits a thread's stack.
inline constexpr uint32_t kMaxExprDepth = 2000;
// The body of a fused step nests at most so deep, and has at most so many nodes with every shared
// part written out at each use (a + a of b + b of ...). Derived forms nest a few times as deep as
// the body.
inline constexpr uint32_t kMaxFusedDepth = 400;
inline constexpr double kMaxFusedSize = 0x1p16;

// Thrown for an expression that would nest deeper than kMaxExprDepth.
class ExprTooDeep : public UserError {
 public:
  using UserError::UserError;
};

struct ExprExtent {
  uint32_t depth = 0;  // nodes on the longest path from the root
  double size = 0;     // nodes of the tree without sharing

  bool fits() const { return depth <= kMaxFusedDepth && size <= kMaxFusedSize; }
};
ExprExtent expr_extent(Expr root);

}  // namespace redfuser::ir
