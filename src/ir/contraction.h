// Sums of products over an axis: matrix products inside expressions.
#pragma once

#include <optional>

#include "ir/expr.h"

namespace redfuser::ir {

// Σ_e a·b, times factors that are free of e; a and b are Reads (casts between floats dropped).
struct Contraction {
  Expr axis = nullptr;  // e, a free axis of a and b
  Expr a = nullptr, b = nullptr;
  Expr scale = nullptr;  // null for 1
};

// Σ_e (a − a_zero)·(b − b_zero) of int32 numbers, which wrap around; a and b are Reads of 8-bit
// integers.
struct IntegerContraction {
  Expr axis = nullptr;
  Expr a = nullptr, b = nullptr;
  Expr a_zero = nullptr, b_zero = nullptr;  // int32 and free of e; null for 0
};

// (code − zero) · scale in fp32: code is a Read of 8-bit integers.
struct ScaledInteger {
  Expr code = nullptr;
  int64_t zero = 0;
  double scale = 1;
};

// Which Reads are operands of a contraction. 8-bit floats are cast to floats, without rounding.
enum class Operands { Floats, FloatsAndCodes };

// Recognises a Reduce Sum by flattening products, quotients and signs; nullopt otherwise.
std::optional<Contraction> as_contraction(ExprPool& pool, Expr reduce,
                                          Operands operands = Operands::Floats);

// Recognises a Reduce Sum of int32 products of two differences; nullopt otherwise.
std::optional<IntegerContraction> as_integer_contraction(Expr reduce);

// Recognises products of a difference of integers and constants; nullopt otherwise.
std::optional<ScaledInteger> as_scaled_integer(Expr e);

// The contraction as an expression in that canonical order.
Expr rebuilt(ExprPool& pool, const Contraction& contraction, DType dtype);

// `e` without casts between float types, which fusion may skip.
Expr without_float_casts(Expr e);

}  // namespace redfuser::ir
