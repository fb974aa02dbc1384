// Element types that ONNX allows an operator.
#pragma once

#include "ir/graph.h"

namespace redfuser {

// True if the operator, in the node's opset, takes `dtype` (a 16-bit float) wherever it takes
// float32. False for operators without a schema.
bool takes_type(const Node& node, DType dtype);

}  // namespace redfuser
