// Values of a graph, node by node in double precision; written to be evidently right, not fast.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace redfuser::reference {

// Whether float results of a node are rounded to their types in the graph.
enum class Rounding { Never, EveryNode };

class Evaluation {
 public:
  // The tensor of a given value; null for a value to compute.
  using Given = std::function<const Tensor*(ir::ValueId)>;

  // The graph must outlive this object.
  explicit Evaluation(const ir::Graph& graph, Rounding rounding = Rounding::Never)
      : graph_(graph), rounding_(rounding) {}

  // Computes `wanted`, returned in this order, from given values and constants; a wanted value is
  // computed even if it is given. Floats of 16 bits and more are computed and returned in Float64.
  // With Rounding::Never casts to narrower floats do not round either. Values of other types
  // (integers, bools, floats of 8 bits) are rounded as in the graph.
  //
  // `side` is 0, 1 or -1. With 1, the arguments of functions with jumps (rounding, comparison,
  // ranking, casts to integers) are moved by some units in the last place of their type, half of
  // the elements up and half down; with -1, in the opposite directions. Differences between the
  // three results are due to arguments at the edge of a jump.
  //
  // Throws UserError, in the form `[Op] node "name": ...`, for operators that are not covered:
  // random ones, and those without an expression in src/ops or in src/reference/operators.
  std::vector<Tensor> evaluate(const std::vector<ir::ValueId>& wanted, const Given& given,
                               int side = 0) const;
  Tensor evaluate(ir::ValueId wanted, const Given& given, int side = 0) const;

 private:
  const ir::Graph& graph_;
  Rounding rounding_;
};

// The outputs of one node, with floats in Float64 as above. `inputs` in the order of the node's.
std::vector<Tensor> evaluate_node(const ir::Graph& graph, ir::NodeId node,
                                  std::vector<Tensor> inputs, int side = 0);

}  // namespace redfuser::reference
