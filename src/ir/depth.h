// How deep expressions nest, and how large they are written out: what walks over them by recursion
// is bounded by these.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "ir/expr.h"

namespace redfuser::ir {

// A pool makes no expression that nests deeper. A recursive walk over one fits a thread's stack.
inline constexpr uint32_t kMaxExprDepth = 2000;
// Nodes are not fused where the body of the step would nest deeper, or where it would have more
// nodes with each shared part written out wherever it is used (a + a of b + b of ...). What is
// derived from a body nests a few times as deep.
inline constexpr uint32_t kMaxFusedDepth = 400;
inline constexpr double kMaxFusedSize = 0x1p16;

// Thrown in place of an expression beyond kMaxExprDepth.
class ExprTooDeep : public UserError {
 public:
  using UserError::UserError;
};

struct ExprExtent {
  uint32_t depth = 0;  // nodes on the longest way down from the root
  double size = 0;     // nodes of the tree in which nothing is shared

  bool fits() const { return depth <= kMaxFusedDepth && size <= kMaxFusedSize; }
};
ExprExtent expr_extent(Expr root);

}  // namespace redfuser::ir
