// Operations on real numbers, in double.
#pragma once

#include "ir/expr.h"
#include "reference/expressions/lanes.h"

namespace redfuser::reference {

// Of one and of two arrays; comparisons and tests give words. InternalError for what is no
// operation of real numbers.
Lanes of_real(ir::ExprOp op, const Numbers& x);
Lanes of_reals(ir::ExprOp op, const Numbers& a, const Numbers& b);

}  // namespace redfuser::reference
