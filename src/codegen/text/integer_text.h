// The CUDA text of operations on integers by src/ir/scalars/integers.h: words of
// value_type(dtype), wrapped around if a result may be out of the type's range.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"

namespace redfuser::codegen {

// A literal of value_type(dtype).
std::string word_text(DType dtype, int64_t word);
// `x`, of value_type(from), as a word of `dtype`; both are integers.
std::string integer_cast_text(DType dtype, DType from, const std::string& x);
// A float or double `x` as a word of `dtype`.
std::string to_integer_text(DType dtype, const std::string& x);
// The text of `expr`, an operation with an integer result, on operands that are values, before
// wrapping. Empty for operations with the same text for other types.
std::string integer_operation_text(ir::Expr expr, const std::vector<std::string>& args);

}  // namespace redfuser::codegen
