// Element types that ONNX allows an operator.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace redfuser::onnx {

// True if the operator, in the node's opset, takes `dtype` (a 16-bit float) wherever it takes
// float32. False for operators without a schema.
bool takes_type(const ir::Node& node, DType dtype);

// The type of each input (Undefined where absent), were the floats that the operator's schema wants
// alike all of the widest type among them: of fp16 and bf16 that is fp32.
std::vector<DType> common_float_types(const ir::Graph& graph, const ir::Node& node);

// UserError for an input of a kind (float, low-bit float, integer, bool, text, sequence, optional)
// of which the operator's schema takes no type, and for tensors of different types where the schema
// has one type parameter: kernels support the types that a schema allows. Operators without a
// schema pass.
void check_kinds_of_inputs(const ir::Graph& graph, const ir::Node& node);

}  // namespace redfuser::onnx
