// Arithmetic on sizes and positions, with what can be proved already simplified.
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
// The dtype in which sizes meet values of `dtype`: Float32 for floats of 16 bits, which hold few
// whole numbers, else `dtype` itself.
DType computing_type(DType dtype);
// The number of elements, if every size is a Constant.
std::optional<int64_t> constant_count(std::span<const ir::Expr> shape);
ir::Expr product_of(ir::ExprPool& pool, std::span<const ir::Expr> sizes);
ir::Expr ceil_div(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
// min(a, b), the same whichever is first.
ir::Expr min_of(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
// max(a, b) of computed numbers: a Select where it may become a size, as Max of sizes stands for
// broadcasting.
ir::Expr max_of(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
// max(x, 0), likewise.
ir::Expr at_least_zero(ir::ExprPool& pool, ir::Expr x);
// Where `position` is negative, it counts from the end of `size` elements.
ir::Expr from_end(ir::ExprPool& pool, ir::Expr position, ir::Expr size);
// `index` moved into [0, size), which is not empty; the identity where it is proved to be there.
ir::Expr clamp_index(ir::ExprPool& pool, ir::Expr index, ir::Expr size);
// A position computed from data: counted from the end if negative, then clamped into [0, size), so
// that no data makes a read leave its tensor.
ir::Expr data_index(ir::ExprPool& pool, ir::Expr position, ir::Expr size);
ir::Expr less(ir::ExprPool& pool, ir::Expr a, ir::Expr b);
ir::Expr equal(ir::ExprPool& pool, ir::Expr a, ir::Expr b);

}  // namespace redfuser::ops
