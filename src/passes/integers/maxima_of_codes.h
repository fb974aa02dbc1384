// Maxima of dequantised values.
#pragma once

#include "ir/graph.h"

namespace redfuser::passes {

// Replaces maxima over windows of values that are 8-bit integers times a positive scale by the same
// function of the integers' maxima, which are read in a quarter of the bytes:
//
//   max_i (c_i − z) · s = (max_i c_i − z) · s
//
// For execution.
bool maxima_of_codes(ir::Graph& graph);

}  // namespace redfuser::passes
