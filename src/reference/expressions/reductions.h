// Reductions of expressions without nested reductions.
#pragma once

#include <vector>

#include "ir/expr.h"
#include "reference/expressions/blocks.h"

namespace redfuser::reference {

// body reduced over all of `bound`, at every point of `free`. Together they are the free axes of
// `body`. Reductions over no elements give the identity; an extremum of integers that of its type.
struct Reducing {
  ir::Reduction reduction;
  DType dtype;  // of the result
  bool index;   // the position of the extremum, not itself
  ir::Expr body;
  std::vector<ir::Expr> free, bound;
};

// A tensor of the sizes of `free`: Sum, Prod, Max, Min, ArgMax or ArgMin. Of equal extrema the
// first counts, and NaN before every number.
Tensor reduced(const Reducing& reducing, const Source& source);

// A tensor of the sizes of `free` and `bound`: the values (or their positions) in the order of
// TopK or BottomK, which is that of ArgMax and ArgMin.
Tensor sorted(const Reducing& reducing, const Source& source);

}  // namespace redfuser::reference
