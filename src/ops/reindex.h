// Indices of elements before and after a change of shape, for Reshape, Concat and similar
// operators.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace redfuser::ops {

// The index under shape `to` of the element that is at `index` under shape `from`, both row-major
// and of equally many elements.
//
// Dimensions are matched in groups. A group ends wherever the leading (or, for the rest, trailing)
// dimensions of both shapes have the same product, so that indices are linearised and divided
// within a group only. Equal dimensions map one to one.
std::vector<ir::Expr> reshape_index(ir::ExprPool& pool, std::span<const ir::Expr> from,
                                    std::span<const ir::Expr> to, std::span<const ir::Expr> index);

// Element `index` of parts joined along dimension `axis`, in which they have `sizes` (n0, n1, ...):
// i < n0 ? part 0 at i : i < n0 + n1 ? part 1 at i - n0 : ..., each part read within its own range.
// Null if all are empty.
ir::Expr joined_element(
    ir::ExprPool& pool, std::span<const ir::Expr> sizes, size_t axis,
    std::span<const ir::Expr> index,
    const std::function<ir::Expr(size_t part, std::vector<ir::Expr> at)>& element);

// Whether a value of shape `to`, whose element at `index` is the one at `read` of a value of shape
// `from`, has all elements of that value in the same order: its bytes under another shape.
bool same_order(ir::ExprPool& pool, std::span<const ir::Expr> from, std::span<const ir::Expr> read,
                std::span<const ir::Expr> to, std::span<const ir::Expr> index);

}  // namespace redfuser::ops
