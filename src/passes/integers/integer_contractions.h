// Convolutions and products of dequantised values, by integers.
#pragma once

#include "ir/graph.h"

namespace redfuser::passes {

// Replaces convolutions and products of values that are 8-bit integers times scales with such
// weights: the sum is one of integers, and what follows reads it times the scale. Where an estimate
// says that this takes less time. For execution only, since the weights lose their names.
bool integer_contractions(ir::Graph& graph);

}  // namespace redfuser::passes
