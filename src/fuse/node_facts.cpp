#include "fuse/node_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cascade/visibility/running.h"
#include "ir/contraction.h"
#include "ir/evaluate.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/registry.h"
#include "ops/reindex.h"
#include "ops/sizes.h"

namespace redfuser::fuse {
namespace {

constexpr int64_t kNominalSize = 1024;
constexpr size_t kMaxRoots = 8;

}  // namespace

bool reads_around(const ir::Graph& graph, ir::Expr body) {
  std::map<int64_t, ir::Expr> first;
  bool around = false;
  visit(body, [&](ir::Expr e) {
    if (e->op != ir::ExprOp::Read || e->integer < 0) return;
    if (graph.values[static_cast<size_t>(e->integer)].is_constant()) return;
    around = around || first.emplace(e->integer, e).first->second != e;
  });
  return around;
}

NodeFacts::NodeFacts(const ir::Graph& graph)
    : graph_(graph),
      consumers_(graph.values.size()),
      outputs_(graph.outputs.begin(), graph.outputs.end()),
      live_(graph.nodes.size()) {
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    traits_.push_back(traits_of(static_cast<ir::NodeId>(node)));
    const Traits& traits = traits_.back();
    has_integer_products_ |= traits.contracts_integers || traits.convolves_integers;
  }
  find_binding_nodes();
  find_live_nodes();
}

// A symbol that is not in a graph input is bound by the first node whose output has it.
void NodeFacts::find_binding_nodes() {
  std::map<ir::Expr, ir::NodeId> bound;
  auto symbols_of = [](const ir::Value& value, const std::function<void(ir::Expr)>& each) {
    for (ir::Expr size : value.shape) {
      visit(size, [&](ir::Expr e) {
        if (e->op == ir::ExprOp::Symbol) each(e);
      });
    }
  };
  for (ir::ValueId input : graph_.inputs) {
    symbols_of(graph_.values[static_cast<size_t>(input)],
               [&](ir::Expr e) { bound.emplace(e, -1); });
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const ir::Node& node = graph_.nodes[n];
    const auto id = static_cast<ir::NodeId>(n);
    auto use = [&](ir::Expr symbol) {
      const auto found = bound.find(symbol);
      if (found == bound.end() || found->second < 0 || found->second == id) return;
      traits_[n].size_sources.insert(found->second);
    };
    for (ir::ValueId output : node.outputs) {
      if (output == ir::kAbsent) continue;
      symbols_of(graph_.values[static_cast<size_t>(output)], [&](ir::Expr e) {
        if (bound.emplace(e, id).second) traits_[n].binds = true;
        use(e);
      });
    }
    for (ir::Expr symbol : traits_[n].symbols) use(symbol);
    if (!traits_[n].binds && traits_[n].lowered) continue;
    for (ir::ValueId input : node.inputs) {
      if (input != ir::kAbsent) traits_[n].reads.insert(input);
    }
  }
}

void NodeFacts::find_live_nodes() {
  std::vector<ir::NodeId> stack;
  auto need_node = [&](ir::NodeId node) {
    if (node < 0 || live_[static_cast<size_t>(node)]) return;
    live_[static_cast<size_t>(node)] = 1;
    stack.push_back(node);
  };
  auto need = [&](ir::ValueId value) { need_node(producer(value)); };
  for (ir::ValueId output : graph_.outputs) need(output);
  while (!stack.empty()) {
    const ir::NodeId node = stack.back();
    stack.pop_back();
    for (ir::ValueId value : reads(node)) need(value);
    for (ir::NodeId source : size_sources(node)) need_node(source);
  }
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!live_[n]) continue;
    for (ir::ValueId value : traits_[n].reads) {
      consumers_[static_cast<size_t>(value)].push_back(static_cast<ir::NodeId>(n));
    }
  }
}

NodeFacts::Traits NodeFacts::traits_of(ir::NodeId id) const {
  const ir::Node& node = graph_.nodes[static_cast<size_t>(id)];
  Traits traits;
  if (!node.def || !node.def->lower) {
    traits.convolves_integers =
        ops::takes_epilogue(node) &&
        is_integer(graph_.values[static_cast<size_t>(node.outputs[0])].dtype);
    return traits;
  }
  traits.lowered = true;
  for (ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent) continue;
    const ir::Value& value = graph_.values[static_cast<size_t>(output)];
    // Constants need no lowering.
    if (value.is_constant()) continue;
    ops::Lowering lowering(graph_, [&](ir::ValueId v) { return v == output; });
    const std::vector<ir::Expr> index = ops::shared_index(graph_, output);
    ir::Expr body = lowering.element(output, index);
    traits.view = body->op == ir::ExprOp::Read && body->integer != output;
    if (traits.view) {
      const ir::Value& source = graph_.values[static_cast<size_t>(body->integer)];
      traits.renames = source.dtype == value.dtype &&
                       ops::same_order(*graph_.pool, source.shape, body->args, value.shape, index);
    }
    traits.gathers |= reads_around(graph_, body);
    traits.narrows = body->op == ir::ExprOp::Cast && body->args[0]->op == ir::ExprOp::Read &&
                     size_of(body->dtype) < size_of(body->args[0]->dtype);
    visit(body, [&](ir::Expr e) {
      if (e->op == ir::ExprOp::Read) traits.reads.insert(static_cast<ir::ValueId>(e->integer));
      if (e->op == ir::ExprOp::Symbol) traits.symbols.insert(e);
      traits.unpacks |= is_float(value.dtype) && e->op == ir::ExprOp::Cast && is_float(e->dtype) &&
                        e->args[0]->op == ir::ExprOp::Read && is_low_bit_float(e->args[0]->dtype);
      if (e->op != ir::ExprOp::Reduce) return;
      traits.reduces = true;
      traits.runs |= cascade::running_reduction(*graph_.pool, e).has_value();
      auto contraction = as_contraction(*graph_.pool, e);
      traits.contracts |= contraction && contraction->a != contraction->b;
      traits.contracts_integers |= ir::as_integer_contraction(e).has_value();
      traits.contracts |= traits.contracts_integers;
    });
  }
  traits.unpacks &= !traits.reduces;
  traits.gathers &= !traits.reduces;
  return traits;
}

bool NodeFacts::binds_by(ir::NodeId node, ir::ValueId read) const {
  if (!binds(node)) return false;
  const ir::Value& value = graph_.values[static_cast<size_t>(read)];
  const auto count = ops::constant_count(value.shape);
  return !value.is_constant() && count && *count <= ir::kMaxElements;
}

std::vector<ir::NodeId> NodeFacts::consumers_of(ir::NodeId node) const {
  std::vector<ir::NodeId> all;
  for (ir::ValueId output : graph_.nodes[static_cast<size_t>(node)].outputs) {
    if (output == ir::kAbsent) continue;
    all.insert(all.end(), consumers(output).begin(), consumers(output).end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

ir::NodeId NodeFacts::producer(ir::ValueId value) const {
  const ir::Value& v = graph_.values[static_cast<size_t>(value)];
  return v.is_constant() ? -1 : v.producer;
}

double NodeFacts::nominal_size(ir::ValueId value) const {
  double size = 1;
  for (ir::Expr dim : graph_.values[static_cast<size_t>(value)].shape) {
    size *= evaluate(dim, [](ir::Expr) { return static_cast<double>(kNominalSize); });
  }
  return size;
}

const std::set<ir::ValueId>& NodeFacts::roots(ir::ValueId value) const {
  std::vector<ir::ValueId> open{value};
  while (!open.empty()) {
    const ir::ValueId at = open.back();
    const std::vector<ir::ValueId> from =
        roots_.count(at) ? std::vector<ir::ValueId>() : sources(at);
    const size_t before = open.size();
    for (ir::ValueId source : from) {
      if (!roots_.count(source)) open.push_back(source);
    }
    if (open.size() > before) continue;
    open.pop_back();
    std::set<ir::ValueId> result;
    for (ir::ValueId source : from) {
      const auto& below = roots_.at(source);
      result.insert(below.begin(), below.end());
    }
    const ir::NodeId node = producer(at);
    const bool stored = node < 0 || !lowered(node) || reduces(node);
    if (stored || result.size() > kMaxRoots) result = {at};
    roots_.try_emplace(at, std::move(result));
  }
  return roots_.at(value);
}

// The inputs of an elementwise node; empty for values of other nodes.
std::vector<ir::ValueId> NodeFacts::sources(ir::ValueId value) const {
  const ir::NodeId node = producer(value);
  if (node < 0 || !lowered(node) || reduces(node)) return {};
  std::vector<ir::ValueId> inputs;
  for (ir::ValueId input : graph_.nodes[static_cast<size_t>(node)].inputs) {
    if (input == ir::kAbsent || graph_.values[static_cast<size_t>(input)].has_elements) continue;
    inputs.push_back(input);
  }
  return inputs;
}

bool NodeFacts::recomputed(ir::ValueId value) const {
  const auto& from = roots(value);
  if (from.count(value)) return false;
  double total = 0;
  for (ir::ValueId root : from) total += nominal_size(root);
  return nominal_size(value) >= 2 * total;
}

}  // namespace redfuser::fuse
