// Shape inference of one node, and the elements of small integer values.
#pragma once

#include "ir/graph.h"

namespace redfuser::ops {

// Infers dtype, shape, elements and the indexed flag of one node's outputs. UserError that names
// the node for invalid inputs and attributes, and for sizes beyond 64 bits.
void infer_node(ir::Graph& graph, ir::NodeId node);
// Infers the indexed flag only.
void infer_indexed(ir::Graph& graph, ir::NodeId node);

// Makes a value a constant: sets dtype, shape and, for small tensors, elements.
void set_constant(ir::Graph& graph, ir::ValueId value, Tensor tensor);

}  // namespace redfuser::ops
