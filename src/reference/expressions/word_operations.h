// Operations on words: integers, bools, and what is moved alone.
#pragma once

#include "ir/expr.h"
#include "reference/expressions/lanes.h"

namespace redfuser::reference {

// Of one and of two arrays of `dtype`. Results are right modulo 2^bits of the type, but not wrapped
// around within it; quotients by zero are 0. InternalError for what is no operation of integers.
Words of_words(ir::ExprOp op, DType dtype, const Words& a);
Words of_words(ir::ExprOp op, DType dtype, const Words& a, const Words& b);

// Whether word `a` of `dtype` is less than `b`.
bool less_words(DType dtype, int64_t a, int64_t b);
// What is left of `word` in an integer type; other types keep it.
int64_t wrapped(DType dtype, int64_t word);

}  // namespace redfuser::reference
