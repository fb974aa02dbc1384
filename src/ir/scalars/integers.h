// Arithmetic of integer elements, as constant folding, the evaluators, the CPU's programs and the
// CUDA text implement it.
//
// Elements are computed as 64-bit words: narrower types are sign-extended or zero-extended, and
// uint64 is represented by its bits. Results wrap around within the type.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/scalars/expr_op.h"
#include "redfuser/tensor.h"

namespace redfuser::ir {

// uint2 to uint64.
bool is_unsigned(DType dtype);
// The word of `dtype` that equals `value` modulo 2^bits; `value` itself for types that are not
// integers.
int64_t wrapped_word(DType dtype, int64_t value);
// The words of the smallest and of the largest element.
int64_t lowest_word(DType dtype);
int64_t highest_word(DType dtype);
// The number that a word represents; beyond 2^53 the nearest double.
double number_of_word(DType dtype, int64_t word);
// Whether conversion from a float to `dtype` goes through int32: true for int32 and types of up to
// 16 bits. uint32 goes through int64.
bool converts_by_int32(DType dtype);
// The number truncated and wrapped around within `dtype`. NaN and numbers out of range first become
// the smallest value of the intermediate type (int32 or int64); for uint64, 2^64 and more become 0.
// ONNX leaves these cases undefined; numpy and ONNX Runtime give these results on x86.
int64_t word_of_number(DType dtype, double value);

// Whether the result of `op` on words of `dtype` may be out of its range and needs wrapping.
bool leaves_type(ExprOp op, DType dtype);
// Whether the result of `op` is right modulo 2^bits if its operands are (sums, products, ...).
bool is_modular(ExprOp op);

// `op` on words of `dtype`: a word of `dtype`, or 0 and 1 for a comparison. nullopt for operations
// that are not of integers. A division by zero gives 0, as does a shift by all bits or more; a
// quotient that overflows wraps around.
std::optional<int64_t> word_operation(ExprOp op, DType dtype, int64_t a, int64_t b);
std::optional<int64_t> word_operation(ExprOp op, DType dtype, int64_t a);

}  // namespace redfuser::ir
