// The value of an expression.
#pragma once

#include <functional>
#include <span>

#include "ir/expr.h"

namespace redfuser::ir {

// Returns the values of leaves, symbols, axes and reads; integers up to 2^53 are exact.
using Environment = std::function<double(Expr)>;

// Reference evaluation in double precision. The environment gets the node of a read and evaluates
// its indices by `evaluate`.
double evaluate(Expr expr, const Environment& environment);

// Evaluates a size, an integer expression over symbols. `symbols[i]` is the value of the symbol
// whose number (`integer`) is i, or -1 if it is unbound (InternalError).
int64_t evaluate_size(Expr expr, std::span<const int64_t> symbols);

}  // namespace redfuser::ir
