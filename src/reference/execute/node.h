// One node on the tensors at hand.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ops/op_def.h"

namespace redfuser::reference {

// A node whose inputs are tensors, in a graph of its own: every size is a number there. Floats are
// held in Float64, and the node is one of Float64: it does not round them.
class NodeOnTensors {
 public:
  // `inputs` as in the node, with Float64 for floats; undefined where one is absent. Throws
  // UserError, in the form `[Op] node "name": ...`, where the node's rules refuse them.
  NodeOnTensors(const ir::Node& node, std::vector<Tensor> inputs);
  NodeOnTensors(const NodeOnTensors&) = delete;

  // Whether an output jumps where an argument passes an edge: it is not of floats, or its
  // expression rounds, compares or casts to integers.
  bool has_jumps();

  // By output of the node; undefined where one is absent. UserError for positions that are out of
  // range, and for operators that are not covered.
  std::vector<Tensor> outputs();

 private:
  struct Meaning {
    std::vector<ir::Expr> axes;
    ir::Expr element = nullptr;
  };

  const ir::Node& node() const { return graph_.nodes[0]; }
  const Meaning& meaning(int output);
  void check_positions() const;

  ir::Graph graph_;
  std::vector<Tensor> tensors_;    // by value
  std::vector<Meaning> meanings_;  // by output, as they are asked for
};

}  // namespace redfuser::reference
