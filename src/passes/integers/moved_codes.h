// Quantisations of values that are moved.
#pragma once

#include "ir/graph.h"

namespace redfuser::passes {

// Puts functions q of single elements with results of 8 bits before moves of these elements, so
// that the moves are of bytes and the values before them have no other form in memory:
//
//   q(concat(a, b)) = concat(q(a), q(b)),    q(xᵀ) = q(x)ᵀ
//
// Where nothing else reads the moved floats, and the move does not drop elements. For execution.
bool moved_codes(ir::Graph& graph);

}  // namespace redfuser::passes
