// The loops of a node that reduces dimensions of its input.
#pragma once

#include <span>
#include <vector>

#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser {

// Reduced dimensions that are neighbours (but for dimensions of one element) are one loop over
// their merged extent; its index is split in mixed radix.
struct Loops {
  std::vector<Expr> axes;   // outermost first; none if every extent is one
  std::vector<Expr> index;  // of the input element: the given index with the loops filled in
  Expr count = nullptr;     // elements reduced to one
};

// `index` has an entry for every dimension of `shape`; those where `reduced` holds are ignored.
Loops make_loops(const LowerContext& context, std::span<const Expr> shape,
                 const std::vector<bool>& reduced, std::vector<Expr> index);

// ⊕ of `body` over all loops.
Expr reduce_over(ExprPool& pool, Reduction reduction, const Loops& loops, Expr body);
// Σ body / count, rounded to the body's dtype; the count is not.
Expr mean_over(ExprPool& pool, const Loops& loops, Expr body);

}  // namespace redfuser
