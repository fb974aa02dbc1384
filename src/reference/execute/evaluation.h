// Values of a graph, node by node in double precision: what is right, before it is fast.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"

namespace redfuser::reference {

// Whether floats that a node computes are rounded to the type that the graph gives them.
enum class Rounding { Never, EveryNode };

class Evaluation {
 public:
  // The tensor that stands for a value; null for a value that is to be computed.
  using Given = std::function<const Tensor*(ir::ValueId)>;

  // The graph must outlive this object.
  explicit Evaluation(const ir::Graph& graph, Rounding rounding = Rounding::Never)
      : graph_(graph), rounding_(rounding) {}

  // `wanted`, in this order, computed node by node from their producers back to given values and
  // constants; a wanted value is computed even where it is given. Floats of all widths are held in
  // Float64, and results are Float64 for them. With Rounding::Never a cast to a narrower float
  // rounds neither. What is stored in other types (integers, bools, floats of 8 bits) is rounded as
  // the graph says.
  //
  // `side` is 0, 1 or -1. Where it is not 0, the arguments of functions with jumps (rounding,
  // comparison, ranking, a cast to integers) are moved by some units in the last place of their own
  // type, half of the elements up and half down, and by -1 the other way round: what differs
  // between the three results hangs on an argument at the edge of a jump.
  //
  // Throws UserError, in the form `[Op] node "name": ...`, for operators that are not covered: the
  // random ones, and those without an expression that src/reference/opaque.h does not name.
  std::vector<Tensor> evaluate(const std::vector<ir::ValueId>& wanted, const Given& given,
                               int side = 0) const;
  Tensor evaluate(ir::ValueId wanted, const Given& given, int side = 0) const;

 private:
  const ir::Graph& graph_;
  Rounding rounding_;
};

// One node of a graph: its outputs, with floats in Float64, as above. `inputs` as in the node.
std::vector<Tensor> evaluate_node(const ir::Graph& graph, ir::NodeId node,
                                  std::vector<Tensor> inputs, int side = 0);

}  // namespace redfuser::reference
