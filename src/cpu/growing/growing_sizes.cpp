#include "cpu/growing/growing_sizes.h"

#include <algorithm>

#include "ir/evaluate.h"

namespace redfuser::cpu {
namespace {

// Whether the size is not less where symbols are greater; false if that is not seen.
bool is_increasing(ir::Expr size) {
  const auto every = [&](auto&& is) {
    return std::all_of(size->args.begin(), size->args.end(), is);
  };
  switch (size->op) {
    case ir::ExprOp::Constant:
    case ir::ExprOp::Symbol:
      return true;
    case ir::ExprOp::Add:
    case ir::ExprOp::Min:
    case ir::ExprOp::Max:
      return every(is_increasing);
    case ir::ExprOp::Mul:
      return every([](ir::Expr factor) {
        return factor->op == ir::ExprOp::Symbol || (factor->is_constant() && factor->integer >= 0);
      });
    case ir::ExprOp::FloorDiv:
      return is_increasing(size->args[0]) && size->args[1]->is_constant() &&
             size->args[1]->integer > 0;
    default:
      return false;
  }
}

}  // namespace

bool GrowingSizes::grows(ir::Expr size) const {
  bool found = false;
  visit(size, [&](ir::Expr e) {
    found |= e->op == ir::ExprOp::Symbol && offsets[static_cast<size_t>(e->integer)].has_value();
  });
  return found;
}

bool GrowingSizes::grows(const ir::Graph& graph, ir::ValueId value) const {
  if (is_list(graph.values[static_cast<size_t>(value)].dtype)) return false;
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
  if (room != rooms.end()) return room->second;
  Dims dims;
  for (ir::Expr size : graph.values[static_cast<size_t>(value)].shape) {
    dims.push_back(greatest(size));
  }
  return dims;
}

int64_t GrowingSizes::greatest(ir::Expr size) const {
  if (size->is_constant()) return size->integer;
  std::vector<size_t> growing;
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i]) growing.push_back(i);
  }
  return greatest_size(size, most, growing);
}

const GrowingSizes::Append* GrowingSizes::append_of(const fuse::MapStep& step) const {
  const auto found = appends.find(step.outputs.front().value);
  return found == appends.end() ? nullptr : &found->second;
}

int64_t greatest_size(ir::Expr size, std::vector<int64_t> most, std::span<const size_t> growing) {
  int64_t greatest = evaluate_size(size, most);
  if (is_increasing(size) || growing.empty()) return greatest;
  const auto shrink = [&] {
    for (const size_t symbol : growing) --most[symbol];
    return std::all_of(growing.begin(), growing.end(),
                       [&](size_t symbol) { return most[symbol] >= 0; });
  };
  while (shrink()) greatest = std::max(greatest, evaluate_size(size, most));
  return greatest;
}

}  // namespace redfuser::cpu
