// The operations of expressions in double precision, the reference for generated code. Integers
// wrap around within their type, except int64, the type of sizes. Booleans are 0 and 1; 16-bit
// floats are not rounded.
#pragma once

#include <cstddef>
#include <limits>

#include "ir/scalars/expr_op.h"
#include "redfuser/tensor.h"

namespace redfuser::ir {

// Out of range values become the smallest integer, as on x86.
inline int64_t as_int(double value) {
  const bool fits = value >= -0x1p63 && value < 0x1p63;
  return fits ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}

// The larger or smaller; NaN if one is.
double propagate_nan(double a, double b, bool max);
// `value` of type `from` as one of `to`; low-bit floats are their codes.
double cast_between(DType to, DType from, double value);
// Operations of two and of one operand of type `dtype`. A division of integers by zero gives 0.
double binary(ExprOp op, DType dtype, double a, double b);
double unary(ExprOp op, DType dtype, double x);
// The same for `count` operands: y[i] of a[i] and b[i], of x[i]. A result may be an operand.
void binary(ExprOp op, DType dtype, const double* a, const double* b, double* y, size_t count);
void unary(ExprOp op, DType dtype, const double* x, double* y, size_t count);

}  // namespace redfuser::ir
