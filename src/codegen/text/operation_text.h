// Operations, literals and reductions as CUDA text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"

namespace redfuser::codegen {

// The text of an operation on operands that are already values.
std::string operation_text(ir::Expr expr, const std::vector<std::string>& args, bool fast_exp);
// A literal of value_type(dtype); for a float of 8 bits `number` is the code.
std::string literal(double number, DType dtype);
// The exact identity of a reduction.
std::string identity_of(ir::Reduction reduction, DType dtype);
// "SumOp", "MaxOp", "FirstLargeOp", ...
std::string_view combiner_of(ir::Reduction reduction);

}  // namespace redfuser::codegen
