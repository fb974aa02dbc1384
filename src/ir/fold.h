// Simplification of a node before ExprPool::make interns it.
#pragma once

#include <vector>

#include "ir/expr.h"

namespace redfuser::ir {

// The dtype of `op` applied to `args`.
DType result_dtype(ExprOp op, const std::vector<Expr>& args);
// A simpler equal expression, or null if there is none. Integer sums and products become canonical
// polynomials. Float rewrites keep every value, NaN and infinity included (x+0, x*1, constants).
Expr fold(ExprPool& pool, ExprOp op, const std::vector<Expr>& args);
Expr fold_cast(ExprPool& pool, DType dtype, Expr value);

}  // namespace redfuser::ir
