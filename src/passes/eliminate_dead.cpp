#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

std::vector<char> find_dead_nodes(const ir::Graph& graph) {
  std::vector<char> needed(graph.values.size()), dead(graph.nodes.size(), 1);
  for (ir::ValueId output : graph.outputs) needed[output] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    for (ir::ValueId output : graph.nodes[i].outputs) {
      if (output != ir::kAbsent && needed[output]) dead[i] = 0;
    }
    if (dead[i]) continue;
    for (ir::ValueId input : graph.nodes[i].inputs) {
      if (input != ir::kAbsent) needed[input] = 1;
    }
  }
  return dead;
}

// Keeps the values that the graph or one of its nodes refers to.
bool compact_values(ir::Graph& graph) {
  std::vector<ir::ValueId> renumbered(graph.values.size(), ir::kAbsent);
  auto for_each_reference = [&](auto&& body) {
    for (ir::ValueId& id : graph.inputs) body(id);
    for (ir::ValueId& id : graph.outputs) body(id);
    for (ir::Node& node : graph.nodes) {
      for (ir::ValueId& id : node.inputs) body(id);
      for (ir::ValueId& id : node.outputs) body(id);
    }
  };
  for_each_reference([&](ir::ValueId& id) {
    if (id != ir::kAbsent) renumbered[id] = 0;
  });
  ir::ValueId count = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (renumbered[i] == ir::kAbsent) continue;
    renumbered[i] = count;
    if (static_cast<size_t>(count) != i) graph.values[count] = std::move(graph.values[i]);
    ++count;
  }
  if (static_cast<size_t>(count) == graph.values.size()) return false;
  graph.values.resize(count);
  for_each_reference([&](ir::ValueId& id) {
    if (id != ir::kAbsent) id = renumbered[id];
  });
  return true;
}

}  // namespace

bool eliminate_dead(ir::Graph& graph) {
  std::vector<char> dead = find_dead_nodes(graph);
  size_t before = graph.nodes.size();
  erase_nodes(graph, dead);
  bool fewer_values = compact_values(graph);
  return fewer_values || graph.nodes.size() != before;
}

}  // namespace redfuser::passes
