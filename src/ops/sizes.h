// Arithmetic on sizes and positions, simplified as far as proofs allow.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace redfuser::ops {

using Shape = std::vector<ir::Expr>;

// "[batch,seq,64]"
std::string shape_text(const ir::ExprPool& pool, std::span<const ir::Expr> shape);
// The number, if the expression is a Constant.
std::optional<int64_t> constant_of(ir::Expr size);
// The dtype for arithmetic between sizes and values of `dtype`: Float32 for 16-bit floats, which
// represent few integers exactly, else `dtype` itself.
DType computing_type(DType dtype);
// The number of elements, if every size is a Constant.
std::optional<int64_t> constant_count(std::span<const ir::Expr> shape);
ir::Expr product_of(ir::ExprPool& pool, std::span<const ir::Expr> sizes);
ir::Expr ceil_div(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
// min(a, b); the same expression for min(b, a).
ir::Expr min_of(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
// max(a, b) of computed numbers. A Select if it may become a size, since Max of sizes denotes
// broadcasting.
ir::Expr max_of(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
// max(x, 0), likewise.
ir::Expr at_least_zero(ir::ExprPool& pool, ir::Expr x);
// A negative `position` counts from the end of `size` elements.
ir::Expr from_end(ir::ExprPool& pool, ir::Expr position, ir::Expr size);
// `index` clamped to [0, size), which is not empty; `index` itself if it is proved to be in range.
ir::Expr clamp_index(ir::ExprPool& pool, ir::Expr index, ir::Expr size);
// A position computed from data: counted from the end if negative, then clamped to [0, size), so
// that every read stays within its tensor.
ir::Expr data_index(ir::ExprPool& pool, ir::Expr position, ir::Expr size);
ir::Expr less(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
ir::Expr equal(ir::ExprPool& pool, ir::Expr a, ir::Expr b);

}  // namespace redfuser::ops
