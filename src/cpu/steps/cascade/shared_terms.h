// Terms of sums that outputs repeat.
#pragma once

#include "cpu/steps/cascade/cascade_roles.h"

namespace redfuser::cpu {

// For rows that are there as a whole. A rescaled sum adds up terms of the running results, guarded
// for rows without any finite element: exp(x - m) for the m of the elements so far. An output of
// the row has the term of the final results. Where it does, the sum becomes one of that term, as
// the graph says, so that a term is computed once: d = Σ F(x, d_1 ..), over Result leaves, without
// transport, and its finish is its state.
void share_terms(ir::ExprPool& pool, SpecializedStreaming& s);

// The number of stages, from the first, whose results need no accumulator from `lifted` on, and are
// no elements picked by rank.
size_t stages_ready(const cascade::Streaming& form, size_t lifted);

}  // namespace redfuser::cpu
