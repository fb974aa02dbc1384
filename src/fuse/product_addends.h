// Addends that a matrix product adds in its epilogue; internal to src/fuse.
#pragma once

#include "fuse/node_facts.h"

namespace redfuser::fuse {

// The node adds a constant vector or one value of the result's shape to a product with a constant
// matrix, and nothing else uses the product. The product's epilogue adds it, so that a region reads
// one value instead of up to three.
bool completes_product(const NodeFacts& facts, ir::NodeId node);

}  // namespace redfuser::fuse
