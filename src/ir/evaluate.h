// The value of an expression.
#pragma once

#include <functional>
#include <span>

#include "ir/expr.h"

namespace redfuser::ir {

// Supplies leaves, symbols, axes and reads to the scalar evaluators. `value` returns a double;
// integers up to 2^53 are exact.
using Environment = std::function<double(Expr)>;

// Reference evaluation in double precision (fp64 is the oracle of every test). Reads receive the
// node; their indices are evaluated by the environment through `evaluate` itself.
double evaluate(Expr expr, const Environment& environment);

// Sizes: evaluates an integer expression over symbols. `symbols[i]` is the value of the symbol
// whose number (`integer`) is i; -1 is unbound. Throws InternalError for an unbound symbol.
int64_t evaluate_size(Expr expr, std::span<const int64_t> symbols);

}  // namespace redfuser::ir
