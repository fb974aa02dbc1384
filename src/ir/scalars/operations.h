// Properties of the scalar operations: the columns of operations.def.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

#include "ir/scalars/expr_op.h"

namespace redfuser::ir {

// The sign of every result that is not NaN.
enum class ResultSign : uint8_t { Unknown, NonNegative, Positive };

// Growth of rounding errors from the operands to the result: None for truth values; Bounded if the
// result's error, relative to the largest value, is not much larger than the operands'.
enum class ErrorGrowth : uint8_t { Unbounded, Bounded, None };

// The integer types of fewer than 64 bits for which a result may be out of range.
enum class Overflow : uint8_t { Never, Signed, Unsigned, Any };

struct ScalarOp {
  // Printed expressions: the text between the operands, or else a function's name.
  std::string_view name = {}, infix = {};

  // CUDA expressions. {x} is the operand of one, {a} and {b} are those of two; {f} is "f" in single
  // precision, and empty in double precision. Functions are the CUDA library's or of src/device.
  std::string_view cuda = {};           // any type, unless the next columns say otherwise
  std::string_view cuda_fast = {};      // single precision, for results rounded to 16 bits
  std::string_view cuda_integer = {};   // integers
  std::string_view cuda_wrapping = {};  // elements of all integer types but uint64

  bool boolean = false;  // the result is a Bool, of operands of any type

  // For floats. Analyses rely on these claims.
  ResultSign sign = ResultSign::Unknown;
  double bound = std::numeric_limits<double>::infinity();  // of the result's magnitude
  bool increasing = false;                                 // strictly, wherever it is not NaN
  bool jumps = false;  // the last bit of an operand may change the result by more than that
  ErrorGrowth error = ErrorGrowth::Unbounded;

  // For integers.
  bool modular = false;  // right modulo 2^bits where its operands are
  Overflow overflow = Overflow::Never;

  bool costly = false;  // several instructions on a GPU
};

inline constexpr ScalarOp kScalarOps[] = {
#define RF_SCALAR_OP(NAME, REFERENCE, ...) {__VA_ARGS__},
#include "ir/scalars/operations.def"
};

inline constexpr ScalarOp kNoFacts = {};

// The properties of an operation; the defaults claim nothing for operations outside of the table.
constexpr const ScalarOp& scalar_op(ExprOp op) {
  const auto row = static_cast<size_t>(op) - static_cast<size_t>(ExprOp::Add);
  return row < std::size(kScalarOps) ? kScalarOps[row] : kNoFacts;
}

}  // namespace redfuser::ir
