// Operations on words: integers, bools, and values that are only moved.
#pragma once

#include "ir/expr.h"
#include "reference/expressions/lanes.h"

namespace redfuser::reference {

// Operations on one and on two arrays of `dtype`. Results are right modulo 2^bits of the type, but
// not wrapped; quotients by zero are 0. InternalError for operations that are not defined on
// integers.
Words of_words(ir::ExprOp op, DType dtype, const Words& a);
Words of_words(ir::ExprOp op, DType dtype, const Words& a, const Words& b);

// Whether word `a` of `dtype` is less than `b`.
bool less_words(DType dtype, int64_t a, int64_t b);
// `word` wrapped to an integer type; unchanged for other types.
int64_t wrapped(DType dtype, int64_t word);

}  // namespace redfuser::reference
