// Reductions over the terms alone that a condition leaves: the elements of a box, of a list that
// ends where the data say.
#pragma once

#include "ir/expr.h"

namespace redfuser::cascade {

// Reductions of select(p, x, e), with the identity e of ⊕, visit the range of terms that p leaves:
//
//   ⊕_{k < n} f(k) = ⊕_{j < end - begin} f(begin + j),  p(k) only where begin <= k < end
//
// Of nested reductions each axis has its range, which those inside of it leave open. A range is
// taken where tensor elements bound it. One that follows from indices alone, such as the padding of
// a window, hides few terms, and costs the loop its known length.
ir::Expr visible_terms(ir::ExprPool& pool, ir::Expr root);

}  // namespace redfuser::cascade
