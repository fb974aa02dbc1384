// Arithmetic on sizes and positions, with what can be proved already simplified.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace redfuser {

using Shape = std::vector<Expr>;

// "[batch,seq,64]"
std::string shape_text(const ExprPool& pool, std::span<const Expr> shape);
// The number, if the expression is a Constant.
std::optional<int64_t> constant_of(Expr size);
// The dtype in which sizes meet values of `dtype`: Float32 for floats of 16 bits, which hold few
// whole numbers, else `dtype` itself.
DType computing_type(DType dtype);
// The number of elements, if every size is a Constant.
std::optional<int64_t> constant_count(std::span<const Expr> shape);
Expr product_of(ExprPool& pool, std::span<const Expr> sizes);
Expr ceil_div(ExprPool& pool, Expr a, Expr b);
// min(a, b), the same whichever is first.
Expr min_of(ExprPool& pool, Expr a, Expr b);
// max(a, b) of computed numbers: a Select where it may become a size, as Max of sizes stands for
// broadcasting.
Expr max_of(ExprPool& pool, Expr a, Expr b);
// max(x, 0), likewise.
Expr at_least_zero(ExprPool& pool, Expr x);
// Where `position` is negative, it counts from the end of `size` elements.
Expr from_end(ExprPool& pool, Expr position, Expr size);
// `index` moved into [0, size), which is not empty; the identity where it is proved to be there.
Expr clamp_index(ExprPool& pool, Expr index, Expr size);
// A position computed from data: counted from the end if negative, then clamped into [0, size), so
// that no data makes a read leave its tensor.
Expr data_index(ExprPool& pool, Expr position, Expr size);
Expr less(ExprPool& pool, Expr a, Expr b);
Expr equal(ExprPool& pool, Expr a, Expr b);

}  // namespace redfuser
