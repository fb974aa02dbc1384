// The operations of expressions on numbers in double precision: the reference that generated code
// is tested against. Integers are whole numbers and wrap around within their type; int64 does not,
// as a size does not. Booleans are 0 and 1; 16-bit floats are not rounded.
#pragma once

#include <limits>

#include "ir/expr.h"

namespace redfuser::ir {

// What no 64-bit integer holds becomes the smallest, as on x86.
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

}  // namespace redfuser::ir
