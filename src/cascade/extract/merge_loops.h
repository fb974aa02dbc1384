// Reductions over several loops as one.
#pragma once

#include "cascade/extract/extract.h"

namespace redfuser::cascade {

// ⊕ over i of ⊕ over j of f(i, j) = ⊕ over l of f(⌊l/J⌋, l mod J) for j < J: every chain of nested
// reductions in `body` becomes one over the loops in mixed radix, the innermost fastest. A
// contraction of which one operand alone moves along the loop around it stays a reduction of its
// own: it is computed by tiles.
ir::Expr merge_loops(ir::ExprPool& pool, ir::Expr body, Axes axes = Axes::Own);

}  // namespace redfuser::cascade
