// Properties of nodes and values for planning, derived from lowerings alone.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/graph.h"

namespace redfuser::fuse {

// An element of the body reads a value that is computed at run time at several positions, as an
// interpolation does.
bool reads_around(const ir::Graph& graph, ir::Expr body);

class NodeFacts {
 public:
  explicit NodeFacts(const ir::Graph& graph);

  const ir::Graph& graph() const { return graph_; }
  // The node has a lowering.
  bool lowered(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].lowered; }
  // Its lowering reduces over an axis.
  bool reduces(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].reduces; }
  // Its lowering is one Read: a transpose, a slice, a reshape, a broadcast, an embedding look-up.
  bool view(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].view; }
  // Such a Read of all elements in their order: the same bytes under another shape.
  bool renames(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].renames; }
  // Its lowering is a running reduction (src/cascade/visibility/running.h). Regions leave it alone:
  // inside of another reduction it would begin anew for every element.
  bool runs(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].runs; }
  // Its lowering is a product of two tensors summed over one axis, possibly with an epilogue.
  bool contracts(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].contracts; }
  // Such a product of integers.
  bool contracts_integers(ir::NodeId node) const {
    return traits_[static_cast<size_t>(node)].contracts_integers;
  }
  // An operator without a lowering whose kernel sums integers and computes what follows
  // (ops::takes_epilogue).
  bool convolves_integers(ir::NodeId node) const {
    return traits_[static_cast<size_t>(node)].convolves_integers;
  }
  // One of the last two.
  bool has_integer_products() const { return has_integer_products_; }
  // Its lowering is one Read cast to a narrower type.
  bool narrows(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].narrows; }
  // Its lowering reads_around() a point, and reduces nothing.
  bool gathers(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].gathers; }
  // Its lowering makes floats of 8-bit ones, element by element: a cast, or a dequantisation.
  bool unpacks(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].unpacks; }
  // The value is cheaper to recompute than to store: a broadcast function of much smaller values (a
  // mask from positions and lengths).
  bool recomputed(ir::ValueId value) const;

  // Outputs of the graph depend on the node, through values or through run-time sizes.
  bool live(ir::NodeId node) const { return live_[static_cast<size_t>(node)] != 0; }
  // Values that the node's lowering reads; all inputs for a node without a lowering or that binds
  // sizes.
  const std::set<ir::ValueId>& reads(ir::NodeId node) const {
    return traits_[static_cast<size_t>(node)].reads;
  }
  // The node's output sizes are known only from the run-time contents of its inputs.
  bool binds(ir::NodeId node) const { return traits_[static_cast<size_t>(node)].binds; }
  // The node binds sizes, possibly by the contents of this input: one with few elements
  // (ir::kMaxElements). Such a value must be in memory before the node's step.
  bool binds_by(ir::NodeId node, ir::ValueId read) const;

  // Nodes whose run-time sizes are used by this node's result shapes or lowering.
  const std::set<ir::NodeId>& size_sources(ir::NodeId node) const {
    return traits_[static_cast<size_t>(node)].size_sources;
  }

  // Live nodes that read the value, in order.
  const std::vector<ir::NodeId>& consumers(ir::ValueId value) const {
    return consumers_[static_cast<size_t>(value)];
  }
  bool is_output(ir::ValueId value) const { return outputs_.count(value) > 0; }
  // Consumers of every output of the node.
  std::vector<ir::NodeId> consumers_of(ir::NodeId node) const;
  // The number of elements with every symbol at a nominal size, to compare costs.
  double nominal_size(ir::ValueId value) const;
  // The producer of a value that is computed at run time, or -1.
  ir::NodeId producer(ir::ValueId value) const;

 private:
  struct Traits {
    bool lowered = false, reduces = false, view = false, contracts = false,
         contracts_integers = false, convolves_integers = false, binds = false;
    bool narrows = false, renames = false, runs = false, unpacks = false, gathers = false;
    std::set<ir::ValueId> reads;
    std::set<ir::Expr> symbols;  // sizes in the lowering
    std::set<ir::NodeId> size_sources;
  };
  Traits traits_of(ir::NodeId node) const;
  void find_binding_nodes();
  void find_live_nodes();
  const std::set<ir::ValueId>& roots(ir::ValueId value) const;
  std::vector<ir::ValueId> sources(ir::ValueId value) const;

  const ir::Graph& graph_;
  std::vector<std::vector<ir::NodeId>> consumers_;
  std::set<ir::ValueId> outputs_;
  std::vector<Traits> traits_;
  std::vector<char> live_;
  bool has_integer_products_ = false;
  mutable std::map<ir::ValueId, std::set<ir::ValueId>> roots_;
};

}  // namespace redfuser::fuse
