// Contractions of values that are integers times scales, as nodes:
//
//   Σ_k ((a_k − z_a) · s_a) · ((b_k − z_b) · s_b) + c = (Σ_k (a_k − z_a) · (b_k − z_b)) · (s_a ·
//   s_b) + c
//
// where s_a and s_b do not depend on k. The sum of integers is exact, and its product with the
// scale rounds where each term was rounded before.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

struct IntegerForm {
  std::string op;  // ConvInteger or MatMulInteger
  ir::Attributes attributes;
  ir::ValueId codes = ir::kAbsent;   // the left factor: of int8 or uint8
  ir::ValueId floats = ir::kAbsent;  // the dequantised `codes`, an input of the node
  Tensor zero;                       // of its type
  Tensor weights, weight_zeros;      // the latter not defined for 0
  // fp32, broadcast to the result. The factors' scales are not multiplied, so that a kernel that
  // combines constants in float64 does not see a product that was rounded.
  Tensor scale, weight_scale;
  Tensor bias;  // may not be defined
};

// Adds a node and returns its output.
using AddNode = std::function<ir::ValueId(const std::string& op, std::vector<ir::ValueId> inputs,
                                          ir::Attributes attributes)>;
struct LastNode {
  std::string op;
  std::vector<ir::ValueId> inputs;
};

// Adds the constants to the graph, under names that begin with `stem`, and all nodes but the last.
LastNode write_nodes(ir::Graph& graph, const IntegerForm& form, const std::string& stem,
                     const AddNode& add);

// Elements of these sizes, where those that a run decides count as 64.
int64_t typical_count(const std::vector<ir::Expr>& shape);

// Whether the form takes less time than the node of `graph`, by estimates of one thread of this
// CPU, each with the node that reads the result, if it is not null, and the node with the floats of
// the codes, which have to be computed for it. Sizes as of typical_count.
bool is_faster(const ir::Graph& graph, const ir::Node& node, const IntegerForm& form,
               const ir::Node* reader);

}  // namespace redfuser::passes
