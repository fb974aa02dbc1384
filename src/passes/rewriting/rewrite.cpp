#include "passes/rewriting/rewrite.h"

#include <algorithm>

namespace redfuser::passes {

Rewrite::Rewrite(ir::Graph& graph)
    : graph_(graph),
      forward_(graph.values.size()),
      is_input_(graph.values.size()),
      is_output_(graph.values.size()),
      dead_node_(graph.nodes.size()) {
  for (size_t i = 0; i < forward_.size(); ++i) forward_[i] = static_cast<ir::ValueId>(i);
  for (ir::ValueId id : graph.outputs) is_output_[id] = 1;
  for (ir::ValueId id : graph.inputs) {
    is_input_[id] = 1;
    for (ir::Expr size : graph.values[id].shape) {
      visit(size, [&](ir::Expr node) {
        if (node->op != ir::ExprOp::Symbol) return;
        auto number = static_cast<size_t>(node->integer);
        if (input_symbols_.size() <= number) input_symbols_.resize(number + 1);
        input_symbols_[number] = 1;
      });
    }
  }
}

ir::ValueId Rewrite::resolve(ir::ValueId value) const {
  while (value != ir::kAbsent && forward_[value] != value) value = forward_[value];
  return value;
}

bool Rewrite::can_substitute(ir::Expr symbol) const {
  if (symbol->op != ir::ExprOp::Symbol) return false;
  auto number = static_cast<size_t>(symbol->integer);
  return number >= input_symbols_.size() || !input_symbols_[number];
}

bool Rewrite::substitute(ir::Expr symbol, ir::Expr size) {
  if (!can_substitute(symbol)) return false;
  symbols_.emplace_back(symbol, size);
  return true;
}

bool Rewrite::can_replace(ir::ValueId from, ir::ValueId to) const {
  to = resolve(to);
  const ir::Value &source = graph_.values[from], &target = graph_.values[to];
  if (from == to || is_input_[from] || source.dtype != target.dtype) return false;
  if (is_output_[from] && (target.producer < 0 || is_output_[to])) return false;
  if (source.shape.size() != target.shape.size()) return false;
  for (size_t i = 0; i < source.shape.size(); ++i) {
    if (source.shape[i] != target.shape[i] && !can_substitute(source.shape[i])) return false;
  }
  return true;
}

bool Rewrite::replace(ir::ValueId from, ir::ValueId to) {
  to = resolve(to);
  if (!can_replace(from, to)) return false;
  ir::Value &source = graph_.values[from], &target = graph_.values[to];
  for (size_t i = 0; i < source.shape.size(); ++i) {
    if (source.shape[i] != target.shape[i]) substitute(source.shape[i], target.shape[i]);
  }
  if (is_output_[from]) {
    std::swap(source.name, target.name);
    std::swap(is_output_[from], is_output_[to]);
  }
  forward_[from] = to;
  ++replaced_;
  return true;
}

void Rewrite::remove(ir::NodeId node) {
  removed_ += dead_node_[node] == 0;
  dead_node_[node] = 1;
}

// A replacement may contain symbols that are replaced too.
void Rewrite::resolve_symbols() {
  constexpr int kMaxRounds = 16;
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (auto& [symbol, size] : symbols_) {
      ir::Expr resolved = graph_.pool->substitute(size, symbols_);
      changed |= resolved != size;
      size = resolved;
    }
  }
}

bool Rewrite::apply() {
  if (empty()) return false;
  for (ir::Node& node : graph_.nodes) {
    for (ir::ValueId& input : node.inputs) input = resolve(input);
  }
  for (ir::ValueId& output : graph_.outputs) output = resolve(output);
  for (size_t i = 0; i < forward_.size(); ++i) {
    // Frees the memory of a constant without readers.
    if (forward_[i] != static_cast<ir::ValueId>(i)) graph_.values[i].constant = Tensor();
  }
  if (!symbols_.empty()) {
    resolve_symbols();
    auto update = [&](ir::Expr& expr) { expr = graph_.pool->substitute(expr, symbols_); };
    for (ir::Value& value : graph_.values) {
      std::for_each(value.shape.begin(), value.shape.end(), update);
      std::for_each(value.elements.begin(), value.elements.end(), update);
    }
    for (ir::SizeCheck& check : graph_.size_checks) {
      update(check.a);
      update(check.b);
    }
  }
  if (removed_ > 0) erase_nodes(graph_, dead_node_);
  return true;
}

void erase_nodes(ir::Graph& graph, const std::vector<char>& dead) {
  std::vector<ir::NodeId> renumbered(graph.nodes.size(), -1);
  ir::NodeId count = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (dead[i]) continue;
    renumbered[i] = count;
    if (static_cast<size_t>(count) != i) graph.nodes[count] = std::move(graph.nodes[i]);
    ++count;
  }
  graph.nodes.resize(count);
  for (ir::Value& value : graph.values) {
    if (value.producer >= 0) value.producer = renumbered[value.producer];
  }
}

}  // namespace redfuser::passes
