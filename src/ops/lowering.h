// Output elements of nodes as expressions.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace redfuser::ops {

// Lowers output elements through the graph. `inlined(value)` says whether a produced value is
// replaced by its own meaning; otherwise it stays a Read. Constants of one element, known elements
// and indexed values are always replaced.
class Lowering {
 public:
  using Inline = std::function<bool(ir::ValueId)>;
  Lowering(const ir::Graph& graph, Inline inlined);
  ir::Expr element(ir::ValueId value, std::vector<ir::Expr> index);

 private:
  ir::Expr expand(ir::ValueId value, const std::vector<ir::Expr>& index);
  const ir::Graph& graph_;
  Inline inlined_;
  std::map<std::pair<ir::ValueId, std::vector<ir::Expr>>, ir::Expr> memo_;
};

// Fresh axes, one per dimension of `value`.
std::vector<ir::Expr> output_axes(const ir::Graph& graph, ir::ValueId value);
// The same axes at every call, for values of the same sizes too; made at the first.
std::vector<ir::Expr> shared_axes(const ir::Graph& graph, ir::ValueId value);
// The same for fusion, with axes of its own, and the integer 0 for every dimension of one element.
std::vector<ir::Expr> shared_index(const ir::Graph& graph, ir::ValueId value);

}  // namespace redfuser::ops
