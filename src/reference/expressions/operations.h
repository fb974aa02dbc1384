// The operations of expressions over arrays.
#pragma once

#include <span>

#include "ir/expr.h"
#include "reference/expressions/lanes.h"

namespace redfuser::reference {

// An operation, cast or selection of these arguments, point by point. Floats are computed in double
// and not rounded; integers wrap around within their type, and a quotient by zero is 0. Throws
// InternalError for leaves, reads and reductions.
Lanes operation(ir::Expr expr, std::span<const Lanes* const> args);

}  // namespace redfuser::reference
