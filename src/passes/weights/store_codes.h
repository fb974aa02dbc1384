// Constant matrices in few bits, side by side, and as a GPU reads them.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

// The codes of [B1, B2, ...], whose lines are those of all parts; null unless all parts have codes
// in equal blocks along one depth.
std::shared_ptr<const ir::WeightCodes> side_by_side(
    const std::vector<std::shared_ptr<const ir::WeightCodes>>& parts);

// Adds the codes, scales and zero points of constant matrices in few bits to the graph's constants,
// in the order in which a GPU reads them. For execution only.
bool store_codes(ir::Graph& graph);

}  // namespace redfuser::passes
