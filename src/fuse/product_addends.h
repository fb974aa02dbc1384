// Nodes that a matrix product computes in its epilogue; internal to src/fuse.
#pragma once

#include "fuse/node_facts.h"

namespace redfuser::fuse {

// The node adds a constant vector or one value of the result's shape to a product with a constant
// matrix, and nothing else uses the product. The product's epilogue adds it, so that a region reads
// one value instead of up to three.
//
// Or the node is elementwise over a product of integers with a constant matrix, or over a
// convolution of integers: its scale, bias, activation and one value of the result's shape. A
// region reads the finished floats, and computes them once where it reads its row several times.
bool completes_product(const NodeFacts& facts, ir::NodeId node);

}  // namespace redfuser::fuse
