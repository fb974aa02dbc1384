// What planning asks of nodes and values, derived from lowerings alone.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/graph.h"

namespace redfuser {

class GraphFacts {
 public:
  explicit GraphFacts(const Graph& graph);

  const Graph& graph() const { return graph_; }
  // The node has a meaning as an expression.
  bool lowered(NodeId node) const { return traits_[static_cast<size_t>(node)].lowered; }
  // Its meaning reduces over an axis.
  bool reduces(NodeId node) const { return traits_[static_cast<size_t>(node)].reduces; }
  // Its meaning is one Read: a transpose, a slice, a reshape, a broadcast, a row look-up.
  bool view(NodeId node) const { return traits_[static_cast<size_t>(node)].view; }
  // Its meaning is a product of two tensors summed over one axis, possibly with an epilogue.
  bool contracts(NodeId node) const { return traits_[static_cast<size_t>(node)].contracts; }
  // Its meaning is one Read cast to a narrower type.
  bool narrows(NodeId node) const { return traits_[static_cast<size_t>(node)].narrows; }
  // Cheaper computed again than stored: an outer-product-like function of much smaller values
  // (a mask from positions and lengths).
  bool recomputed(ValueId value) const;

  // Nodes that outputs of the graph depend on, through what meanings read or through sizes that
  // are known at run time only.
  bool live(NodeId node) const { return live_[static_cast<size_t>(node)] != 0; }
  // Values that the node's meaning reads; all inputs of a node that has none or that binds sizes.
  const std::set<ValueId>& reads(NodeId node) const {
    return traits_[static_cast<size_t>(node)].reads;
  }
  // The node's output sizes are known only from the run-time contents of its inputs.
  bool binds(NodeId node) const { return traits_[static_cast<size_t>(node)].binds; }

  // Nodes whose run-time sizes this node's result shapes or its meaning use.
  const std::set<NodeId>& size_sources(NodeId node) const {
    return traits_[static_cast<size_t>(node)].size_sources;
  }

  // Live nodes that read the value, in order.
  const std::vector<NodeId>& consumers(ValueId value) const {
    return consumers_[static_cast<size_t>(value)];
  }
  bool is_output(ValueId value) const { return outputs_.count(value) > 0; }
  // Consumers of every output of the node.
  std::vector<NodeId> consumers_of(NodeId node) const;
  // Elements, with every symbol at a nominal size; for comparing costs only.
  double nominal_size(ValueId value) const;
  // The producer of a value that is computed at run time, or -1.
  NodeId producer(ValueId value) const;

 private:
  struct Traits {
    bool lowered = false, reduces = false, view = false, contracts = false, binds = false;
    bool narrows = false;
    std::set<ValueId> reads;
    std::set<Expr> symbols;  // sizes that the meaning holds
    std::set<NodeId> size_sources;
  };
  Traits traits_of(NodeId node) const;
  void find_binding_nodes();
  void find_live_nodes();
  const std::set<ValueId>& roots(ValueId value) const;
  std::vector<ValueId> sources(ValueId value) const;

  const Graph& graph_;
  std::vector<std::vector<NodeId>> consumers_;
  std::set<ValueId> outputs_;
  std::vector<Traits> traits_;
  std::vector<char> live_;
  mutable std::map<ValueId, std::set<ValueId>> roots_;
};

}  // namespace redfuser
