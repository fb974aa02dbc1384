// Values of a graph, computed in wider floats than its own.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"
#include "passes/node_evaluator.h"

namespace redfuser::passes {

class WideEvaluation {
 public:
  // The tensor that stands for a value; null for a value that is to be computed.
  using Given = std::function<const Tensor*(ir::ValueId)>;

  // The graph must outlive this object. `threads` as in SessionOptions.
  WideEvaluation(const ir::Graph& graph, int threads) : graph_(graph), evaluator_(threads) {}

  // `wanted`, computed node by node from its producer back to given values and constants. Floats of
  // 16 and 32 bits are held in 64; a node without a lowering takes those of 16 in 32, and those of
  // 32 as they are. What is stored in other types (integers, bools, floats of 8 bits) is rounded as
  // the graph says.
  //
  // `side` is 0, 1 or -1. Where it is not 0, the arguments of functions with jumps (rounding,
  // comparison, ranking, a cast to integers) are moved by some units in the last place of their own
  // type, half of the elements up and half down, and by -1 the other way round: what differs
  // between the three results hangs on an argument at the edge of a jump.
  Tensor evaluate(ir::ValueId wanted, const Given& given, int side);

 private:
  std::vector<ir::NodeId> needed_nodes(ir::ValueId wanted, const Given& given) const;

  const ir::Graph& graph_;
  NodeEvaluator evaluator_;
};

}  // namespace redfuser::passes
