// Values that are quantised again as they were.
#pragma once

#include "ir/graph.h"

namespace redfuser::passes {

// Replaces a quantisation of a dequantised value by the integers of the latter, where each of their
// 256 values comes back, as with the same scale and zero point. For execution.
bool same_codes(ir::Graph& graph);

}  // namespace redfuser::passes
