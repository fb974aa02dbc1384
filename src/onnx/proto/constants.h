// Constant values of the graph.
#pragma once

#include <string>

#include "ir/graph.h"

namespace redfuser::onnx {

// Adds a value that holds `tensor`, with its dtype and shape. Integers and booleans of at most
// kMaxElements elements, and numbers of one element, also get their symbolic elements.
ir::ValueId add_constant(ir::Graph& graph, const std::string& name, Tensor tensor);

}  // namespace redfuser::onnx
