// The choice of fp32 values that become 16-bit floats.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "passes/precision/convert_floats.h"
#include "passes/precision/precision_class.h"

namespace redfuser::passes {

// The decisions of convert_floats (its header has the rules). Reads the graph in its constructor
// only.
class NarrowFloats {
 public:
  NarrowFloats(const ir::Graph& graph, const FloatConversion& conversion);

  // The value is produced in 16 bits. Never a constant.
  bool narrow(ir::ValueId value) const { return narrow_[static_cast<size_t>(value)] != 0; }
  // The value may be read in 16 bits: it is narrow, rounded for a product, or a constant that fits.
  bool available(ir::ValueId value) const { return available_[static_cast<size_t>(value)] != 0; }
  // The node reads its fp32 inputs in 16 bits.
  bool narrow_node(ir::NodeId node) const { return narrow_node_[static_cast<size_t>(node)] != 0; }

 private:
  void classify();
  void find_whole_numbers();
  void find_wanted();
  void find_summed();
  void decide();
  bool decide_node(const ir::Node& node, const NodePrecision& sensitivity) const;
  bool is_float(ir::ValueId value) const;
  bool is_narrow_product(size_t node) const;
  bool scales(size_t node) const;

  const ir::Graph& graph_;
  const FloatConversion& conversion_;
  std::vector<NodePrecision> sensitivities_;  // by node
  std::vector<char> narrow_node_;
  // By value.
  std::vector<char> narrow_, available_, fits_;
  std::vector<char> whole_;   // made of integers and indices alone
  std::vector<char> wanted_;  // a product reads it, perhaps re-indexed or scaled
  std::vector<char> summed_;  // a sum reads it, perhaps through nodes without other readers
};

}  // namespace redfuser::passes
