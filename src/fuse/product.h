// Contractions as matrix products.
#pragma once

#include <optional>
#include <vector>

#include "fuse/plan.h"

namespace redfuser::fuse {

// The product form of an output body with contractions; nullopt if their operands are not affine in
// the output's axes, the output repeats them, or both are one element.
std::optional<ProductStep> as_product(const ir::Graph& graph, ir::ValueId value, ir::Expr body,
                                      const std::vector<ir::Expr>& axes);

// The same as a reduction, whose expressions are of `pool`, which has those of the step.
ReduceStep as_reduction(ir::ExprPool& pool, const ProductStep& step);

}  // namespace redfuser::fuse
