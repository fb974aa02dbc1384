// Output elements of nodes as expressions.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace redfuser::ops {

// Lowers output elements through the graph. `inlined(value)` tells whether a produced value is
// replaced by its own lowering or stays a Read. Constants of one element, known elements and
// indexed values are always replaced.
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
// The same axes at every call, also for other values of the same sizes.
std::vector<ir::Expr> shared_axes(const ir::Graph& graph, ir::ValueId value);
// The same for fusion, with separate axes, and the integer 0 for every dimension of one element.
std::vector<ir::Expr> shared_index(const ir::Graph& graph, ir::ValueId value);

}  // namespace redfuser::ops
