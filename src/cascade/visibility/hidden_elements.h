// Where an element of the streamed axis is hidden: it contributes the identity to every reduction.
//
// In a lift a mask is a selection. Where the selection takes the masked branch,
//
//   sum  select(c, a, b) is 0     where c and a is 0, or not c and b is 0
//        a · b is 0               where a is 0, or b is
//        exp(x) is 0              where x is -inf
//   max  x + y is -inf            where x is, or y is
//
// and so on, provided that factors of zeros and addends of infinities are finite
// (masked_operands.h). The certificate of a fusion folds rows without these elements too.
#pragma once

#include "cascade/streaming.h"

namespace redfuser::cascade {

// A Bool over the conditions of the lift's selections that depend on no leaf: true where the lift
// is the identity of a Sum, Max or Min. Constant false where that is not known anywhere.
ir::Expr identity_condition(ir::ExprPool& pool, ir::Reduction reduction, ir::Expr lift);

// Of all accumulators.
ir::Expr hidden_elements(ir::ExprPool& pool, const Streaming& streaming);

}  // namespace redfuser::cascade
