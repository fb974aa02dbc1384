// Edits that a pass collects while it visits the nodes, and applies in one linear walk.
#pragma once

#include <utility>
#include <vector>

#include "ir/graph.h"

namespace redfuser::passes {

class Rewrite {
 public:
  explicit Rewrite(ir::Graph& graph);

  // Makes every reader of `from` read `to`, which must have the same dtype and, up to symbols that
  // only `from` binds, the same shape. If `from` is a graph output, `to` gets its name. Returns
  // false without an edit unless can_replace().
  bool replace(ir::ValueId from, ir::ValueId to);
  // False if `from` is a graph input; if the shapes differ; or if `from` is a graph output and `to`
  // is a graph input, a constant or an output of its own.
  bool can_replace(ir::ValueId from, ir::ValueId to) const;
  // The replacement of `value` so far, or `value` itself.
  ir::ValueId resolve(ir::ValueId value) const;
  // Removes a node at apply(). Its outputs must be replaced, constant or unused.
  void remove(ir::NodeId node);
  // Replaces the run-time size `symbol` by `size` in every shape. False if the symbol occurs in the
  // shape of a graph input.
  bool substitute(ir::Expr symbol, ir::Expr size);

  bool empty() const { return replaced_ == 0 && removed_ == 0 && symbols_.empty(); }
  // Performs the edits; true if there were any.
  bool apply();

 private:
  bool can_substitute(ir::Expr symbol) const;
  void resolve_symbols();

  ir::Graph& graph_;
  std::vector<ir::ValueId> forward_;
  std::vector<char> is_input_, is_output_, dead_node_;
  std::vector<std::pair<ir::Expr, ir::Expr>> symbols_;
  std::vector<char> input_symbols_;  // by symbol number
  int replaced_ = 0, removed_ = 0;
};

// Drops the nodes marked in `dead` and renumbers the producers of the values that remain.
void erase_nodes(ir::Graph& graph, const std::vector<char>& dead);

}  // namespace redfuser::passes
