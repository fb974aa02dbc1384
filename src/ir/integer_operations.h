// Arithmetic of integer elements: the one meaning that folding, the evaluators, the CPU's programs
// and the CUDA text follow.
//
// An element is computed with as a 64-bit word: types of fewer bits are extended by their sign or
// by zeros, and uint64 is its bits. Results wrap around within the type.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/expr.h"

namespace redfuser::ir {

// uint2 to uint64.
bool is_unsigned(DType dtype);
// The word of `dtype` that equals `value` modulo 2^bits. Other types than integers keep `value`.
int64_t wrapped_word(DType dtype, int64_t value);
// The words of the smallest and of the largest element.
int64_t lowest_word(DType dtype);
int64_t highest_word(DType dtype);
// The number that a word stands for; beyond 2^53 the nearest double.
double number_of_word(DType dtype, int64_t word);
// Whether a number becomes an element of `dtype` by way of int32: types of up to 16 bits, and
// int32. uint32 goes by way of int64.
bool converts_by_int32(DType dtype);
// A number without its fraction, wrapped around within `dtype`. NaN, and what the type that it goes
// by (int32 or int64) does not hold, becomes the smallest value of that type first; 2^64 and more
// is 0 for uint64. ONNX leaves these open: this is what numpy and ONNX Runtime give on x86.
int64_t word_of_number(DType dtype, double value);

// Whether `op` on words of `dtype` may give what is no word of it. Its result is to be wrapped.
bool leaves_type(ExprOp op, DType dtype);
// Whether the words of a sum, product, ... are right modulo 2^bits where those of its operands are.
bool is_modular(ExprOp op);

// `op` on words of `dtype`: a word of `dtype`, or 0 and 1 for a comparison. nullopt for operations
// that are not of integers. A division by zero gives 0, as does a shift by all bits or more; a
// quotient that overflows wraps around.
std::optional<int64_t> word_operation(ExprOp op, DType dtype, int64_t a, int64_t b);
std::optional<int64_t> word_operation(ExprOp op, DType dtype, int64_t a);

}  // namespace redfuser::ir
