// Sums that a matrix product takes along; internal to src/fuse.
#pragma once

#include "fuse/node_facts.h"

namespace redfuser::fuse {

// The node adds to a product with a constant matrix, which nothing else uses, a constant vector or
// one other value of the result's shape: the product adds that before it writes, so that a region
// that reads the sum reads one value instead of up to three.
bool completes_product(const NodeFacts& facts, ir::NodeId node);

}  // namespace redfuser::fuse
