// The loops of a node that reduces dimensions of its input.
#pragma once

#include <span>
#include <vector>

#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::ops {

// Adjacent reduced dimensions (dimensions of one element aside) are one loop over their merged
// extent, whose index is split in mixed radix.
struct Loops {
  std::vector<ir::Expr> axes;   // outermost first; none if every extent is one
  std::vector<ir::Expr> index;  // of the input element: the given index with the loops inserted
  ir::Expr count = nullptr;     // elements reduced to one
};

// `index` has an entry for every dimension of `shape`; those where `reduced` holds are ignored.
Loops make_loops(const LowerContext& context, std::span<const ir::Expr> shape,
                 const std::vector<bool>& reduced, std::vector<ir::Expr> index);

// ⊕ of `body` over all loops.
ir::Expr reduce_over(ir::ExprPool& pool, ir::Reduction reduction, const Loops& loops,
                     ir::Expr body);
// Σ body / count, rounded to the body's dtype; the count is not.
ir::Expr mean_over(ir::ExprPool& pool, const Loops& loops, ir::Expr body);

}  // namespace redfuser::ops
