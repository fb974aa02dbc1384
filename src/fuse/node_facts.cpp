#include "fuse/node_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/contraction.h"
#include "ops/op_def.h"

namespace redfuser {
namespace {

constexpr int64_t kNominalSize = 1024;
constexpr size_t kMaxRoots = 8;

}  // namespace

GraphFacts::GraphFacts(const Graph& graph)
    : graph_(graph),
      consumers_(graph.values.size()),
      outputs_(graph.outputs.begin(), graph.outputs.end()),
      live_(graph.nodes.size()) {
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    traits_.push_back(traits_of(static_cast<NodeId>(node)));
  }
  find_binding_nodes();
  find_live_nodes();
}

// A symbol that no graph input binds is bound by the first node whose output has it.
void GraphFacts::find_binding_nodes() {
  std::map<Expr, NodeId> bound;
  auto symbols_of = [](const Value& value, const std::function<void(Expr)>& each) {
    for (Expr size : value.shape) {
      visit(size, [&](Expr e) {
        if (e->op == ExprOp::Symbol) each(e);
      });
    }
  };
  for (ValueId input : graph_.inputs) {
    symbols_of(graph_.values[static_cast<size_t>(input)], [&](Expr e) { bound.emplace(e, -1); });
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    const auto id = static_cast<NodeId>(n);
    auto use = [&](Expr symbol) {
      const auto found = bound.find(symbol);
      if (found == bound.end() || found->second < 0 || found->second == id) return;
      traits_[n].size_sources.insert(found->second);
    };
    for (ValueId output : node.outputs) {
      if (output == kAbsent) continue;
      symbols_of(graph_.values[static_cast<size_t>(output)], [&](Expr e) {
        if (bound.emplace(e, id).second) traits_[n].binds = true;
        use(e);
      });
    }
    for (Expr symbol : traits_[n].symbols) use(symbol);
    if (!traits_[n].binds && traits_[n].lowered) continue;
    for (ValueId input : node.inputs) {
      if (input != kAbsent) traits_[n].reads.insert(input);
    }
  }
}

void GraphFacts::find_live_nodes() {
  std::vector<NodeId> stack;
  auto need_node = [&](NodeId node) {
    if (node < 0 || live_[static_cast<size_t>(node)]) return;
    live_[static_cast<size_t>(node)] = 1;
    stack.push_back(node);
  };
  auto need = [&](ValueId value) { need_node(producer(value)); };
  for (ValueId output : graph_.outputs) need(output);
  while (!stack.empty()) {
    const NodeId node = stack.back();
    stack.pop_back();
    for (ValueId value : reads(node)) need(value);
    for (NodeId source : size_sources(node)) need_node(source);
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!live_[n]) continue;
    for (ValueId value : traits_[n].reads) {
      consumers_[static_cast<size_t>(value)].push_back(static_cast<NodeId>(n));
    }
  }
}

GraphFacts::Traits GraphFacts::traits_of(NodeId id) const {
  const Node& node = graph_.nodes[static_cast<size_t>(id)];
  Traits traits;
  if (!node.def || !node.def->lower) return traits;
  traits.lowered = true;
  for (ValueId output : node.outputs) {
    if (output == kAbsent) continue;
    const Value& value = graph_.values[static_cast<size_t>(output)];
    // Constants are never computed; their meaning is their bytes.
    if (value.is_constant()) continue;
    Lowering lowering(graph_, [&](ValueId v) { return v == output; });
    std::vector<Expr> axes;
    for (Expr size : value.shape) {
      axes.push_back(graph_.pool->shared_axis(fmt::format("i{}", axes.size()), size));
    }
    Expr body = lowering.element(output, axes);
    traits.view = body->op == ExprOp::Read && body->integer != output;
    traits.narrows = body->op == ExprOp::Cast && body->args[0]->op == ExprOp::Read &&
                     size_of(body->dtype) < size_of(body->args[0]->dtype);
    visit(body, [&](Expr e) {
      if (e->op == ExprOp::Read) traits.reads.insert(static_cast<ValueId>(e->integer));
      if (e->op == ExprOp::Symbol) traits.symbols.insert(e);
      if (e->op != ExprOp::Reduce) return;
      traits.reduces = true;
      auto contraction = as_contraction(*graph_.pool, e);
      traits.contracts |= contraction && contraction->a != contraction->b;
    });
  }
  return traits;
}

std::vector<NodeId> GraphFacts::consumers_of(NodeId node) const {
  std::vector<NodeId> all;
  for (ValueId output : graph_.nodes[static_cast<size_t>(node)].outputs) {
    if (output == kAbsent) continue;
    all.insert(all.end(), consumers(output).begin(), consumers(output).end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

NodeId GraphFacts::producer(ValueId value) const {
  const Value& v = graph_.values[static_cast<size_t>(value)];
  return v.is_constant() ? -1 : v.producer;
}

double GraphFacts::nominal_size(ValueId value) const {
  double size = 1;
  for (Expr dim : graph_.values[static_cast<size_t>(value)].shape) {
    size *= evaluate(dim, [](Expr) { return static_cast<double>(kNominalSize); });
  }
  return size;
}

const std::set<ValueId>& GraphFacts::roots(ValueId value) const {
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId at = open.back();
    const std::vector<ValueId> from = roots_.count(at) ? std::vector<ValueId>() : sources(at);
    const size_t before = open.size();
    for (ValueId source : from) {
      if (!roots_.count(source)) open.push_back(source);
    }
    if (open.size() > before) continue;
    open.pop_back();
    std::set<ValueId> result;
    for (ValueId source : from) {
      const auto& below = roots_.at(source);
      result.insert(below.begin(), below.end());
    }
    const NodeId node = producer(at);
    const bool stored = node < 0 || !lowered(node) || reduces(node);
    if (stored || result.size() > kMaxRoots) result = {at};
    roots_.try_emplace(at, std::move(result));
  }
  return roots_.at(value);
}

// What an elementwise node computes the value from; empty for a value of another kind.
std::vector<ValueId> GraphFacts::sources(ValueId value) const {
  const NodeId node = producer(value);
  if (node < 0 || !lowered(node) || reduces(node)) return {};
  std::vector<ValueId> inputs;
  for (ValueId input : graph_.nodes[static_cast<size_t>(node)].inputs) {
    if (input == kAbsent || graph_.values[static_cast<size_t>(input)].has_elements) continue;
    inputs.push_back(input);
  }
  return inputs;
}

bool GraphFacts::recomputed(ValueId value) const {
  const auto& from = roots(value);
  if (from.count(value)) return false;
  double total = 0;
  for (ValueId root : from) total += nominal_size(root);
  return nominal_size(value) >= 2 * total;
}

}  // namespace redfuser
