// Indices of one element order under two shapes: the meaning of Reshape and its kin.
#pragma once

#include <span>
#include <vector>

#include "ir/expr.h"

namespace redfuser::ops {

// The index under shape `to` of the element that is at `index` under shape `from`, both row-major
// and of equally many elements.
//
// Dimensions are matched in groups: wherever the leading (or, for the rest, trailing) dimensions of
// both shapes multiply to the same expression a group ends, so that indices are linearised and
// divided only inside a group. Equal dimensions map one to one.
std::vector<ir::Expr> reshape_index(ir::ExprPool& pool, std::span<const ir::Expr> from,
                                    std::span<const ir::Expr> to, std::span<const ir::Expr> index);

}  // namespace redfuser::ops
