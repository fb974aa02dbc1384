// Runs single nodes on the CPU.
#pragma once

#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "ir/graph.h"

namespace redfuser::passes {

class NodeEvaluator {
 public:
  // `threads` as in SessionOptions.
  explicit NodeEvaluator(int threads) : pool_(threads) {}

  // Makes every output of the node a constant. Its inputs must be constants. Throws UserError for
  // what the operator cannot do.
  void evaluate(ir::Graph& graph, ir::NodeId node);

  // Forgets the sizes that were bound on the way: before a graph with symbols of its own.
  void forget_sizes() { symbols_.clear(); }

 private:
  ThreadPool pool_;
  std::vector<Tensor> tensors_;   // by value, of the node at hand
  std::vector<int64_t> symbols_;  // sizes bound on the way
};

}  // namespace redfuser::passes
