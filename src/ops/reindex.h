// Indices of one element order under two shapes: the meaning of Reshape and its kin.
#pragma once

#include <span>
#include <vector>

#include "ir/expr.h"

namespace redfuser {

// The index under shape `to` of the element that is at `index` under shape `from`, both row-major
// and of equally many elements.
//
// Dimensions are matched in groups: wherever the leading (or, for the rest, trailing) dimensions of
// both shapes multiply to the same expression a group ends, so that indices are linearised and
// divided only inside a group. Equal dimensions map one to one.
std::vector<Expr> reshape_index(ExprPool& pool, std::span<const Expr> from,
                                std::span<const Expr> to, std::span<const Expr> index);

}  // namespace redfuser
