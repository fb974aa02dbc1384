// Nodes that compute functions of single elements.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

bool is_byte(DType dtype);  // int8 or uint8

// The only value that the expression reads, at `axes`; kAbsent for others.
ir::ValueId read_value(ir::Expr e, const std::vector<ir::Expr>& axes);

// Whether the node computes its one output from `value` and single numbers.
bool is_function_of(const ir::Graph& graph, const ir::Node& node, ir::ValueId value);

}  // namespace redfuser::passes
