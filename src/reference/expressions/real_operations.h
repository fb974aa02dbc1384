// Operations on real numbers, in double.
#pragma once

#include "ir/expr.h"
#include "reference/expressions/lanes.h"

namespace redfuser::reference {

// Operations on one and on two arrays; comparisons and tests give words. InternalError for
// operations that are not defined on real numbers.
Lanes of_real(ir::ExprOp op, const Numbers& x);
Lanes of_reals(ir::ExprOp op, const Numbers& a, const Numbers& b);

}  // namespace redfuser::reference
