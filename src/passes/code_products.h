// Products of 8-bit floats, found behind the casts and dequantisations of their operands.
#pragma once

#include <optional>
#include <vector>

#include "ir/contraction.h"
#include "ir/graph.h"

namespace redfuser::passes {

struct CodeProduct {
  ir::Contraction contraction;     // a and b are Reads of 8-bit floats
  std::vector<ir::NodeId> passed;  // nodes between these values and the product
};

// The product that the node is, if both operands are 8-bit floats; scales are free of its axis.
std::optional<CodeProduct> code_product(const ir::Graph& graph, ir::NodeId node);

// Whether a value of the graph has 8-bit floats.
bool has_codes(const ir::Graph& graph);

}  // namespace redfuser::passes
