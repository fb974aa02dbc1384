// Element types that ONNX allows an operator.
#pragma once

#include "ir/graph.h"

namespace redfuser {

// True if the operator, in the node's opset, takes `dtype` (a 16-bit float) wherever it takes
// float32. False for operators without a schema.
bool takes_type(const Node& node, DType dtype);

// UserError for an input of a kind (float, low-bit float, integer, bool, text, sequence, optional)
// of which the operator's schema takes no type, and for tensors of different types where the schema
// has one type parameter: kernels are written for what a schema allows. Operators without a schema
// pass.
void check_kinds_of_inputs(const Graph& graph, const Node& node);

}  // namespace redfuser
