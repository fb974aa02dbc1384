// Runs single nodes on the CPU.
#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "ir/graph.h"

namespace redfuser::passes {

class NodeEvaluator {
 public:
  // The pool outlives this.
  explicit NodeEvaluator(ThreadPool& pool) : pool_(pool) {}

  // Makes every output of the node a constant. Its inputs must be constants. Throws UserError for
  // inputs that the operator refuses.
  void evaluate(ir::Graph& graph, ir::NodeId node);

  // Forgets bound sizes; call it before a graph with other symbols.
  void forget_sizes() { symbols_.clear(); }

 private:
  ThreadPool& pool_;
  std::vector<Tensor> tensors_;   // by value, of the current node
  std::vector<int64_t> symbols_;  // bound sizes, by symbol
};

}  // namespace redfuser::passes
