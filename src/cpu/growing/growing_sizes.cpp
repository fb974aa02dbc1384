#include "cpu/growing/growing_sizes.h"

#include <algorithm>

#include "cpu/step.h"

namespace redfuser::cpu {

bool GrowingSizes::grows(ir::Expr size) const {
  bool found = false;
  visit(size, [&](ir::Expr e) {
    found |= e->op == ir::ExprOp::Symbol && offsets[static_cast<size_t>(e->integer)].has_value();
  });
  return found;
}

bool GrowingSizes::grows(const ir::Graph& graph, ir::ValueId value) const {
  const auto& shape = graph.values[static_cast<size_t>(value)].shape;
  return rooms.count(value) > 0 ||
         std::any_of(shape.begin(), shape.end(), [&](ir::Expr size) { return grows(size); });
}

bool GrowingSizes::folds_growing(ir::Expr expr) const {
  bool found = false;
  visit(expr, [&](ir::Expr e) {
    found |= e->op == ir::ExprOp::Reduce && grows(e->bound_axis()->extent());
  });
  return found;
}

Dims GrowingSizes::memory_of(const ir::Graph& graph, ir::ValueId value) const {
  const auto room = rooms.find(value);
  return room != rooms.end() ? room->second : dims_of(graph, value, most);
}

const GrowingSizes::Append* GrowingSizes::append_of(const fuse::MapStep& step) const {
  const auto found = appends.find(step.outputs.front().value);
  return found == appends.end() ? nullptr : &found->second;
}

}  // namespace redfuser::cpu
