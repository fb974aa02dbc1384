// One node on given tensors.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ops/op_def.h"

namespace redfuser::reference {

// A node with tensors as inputs, in a graph of its own whose sizes are constants. Floats are
// Float64 there, so the node does not round them.
class NodeOnTensors {
 public:
  // `inputs` in the order of the node's, with Float64 for floats; undefined for absent ones. Throws
  // UserError, in the form `[Op] node "name": ...`, if the node's rules refuse them.
  NodeOnTensors(const ir::Node& node, std::vector<Tensor> inputs);
  NodeOnTensors(const NodeOnTensors&) = delete;

  // Whether an output is discontinuous in an argument: it is not a float, or its expression rounds,
  // compares or casts to integers.
  bool has_jumps();

  // By output of the node; undefined for absent ones. UserError for positions out of range and for
  // operators that are not covered.
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
  std::vector<Meaning> meanings_;  // by output, made when first needed
};

}  // namespace redfuser::reference
