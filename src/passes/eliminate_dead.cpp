#include "passes/passes.h"
#include "passes/rewrite.h"

namespace redfuser {
namespace {

std::vector<char> find_dead_nodes(const Graph& graph) {
  std::vector<char> needed(graph.values.size()), dead(graph.nodes.size(), 1);
  for (ValueId output : graph.outputs) needed[output] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    for (ValueId output : graph.nodes[i].outputs) {
      if (output != kAbsent && needed[output]) dead[i] = 0;
    }
    if (dead[i]) continue;
    for (ValueId input : graph.nodes[i].inputs) {
      if (input != kAbsent) needed[input] = 1;
    }
  }
  return dead;
}

// Keeps the values that the graph or one of its nodes refers to.
bool compact_values(Graph& graph) {
  std::vector<ValueId> renumbered(graph.values.size(), kAbsent);
  auto for_each_reference = [&](auto&& body) {
    for (ValueId& id : graph.inputs) body(id);
    for (ValueId& id : graph.outputs) body(id);
    for (Node& node : graph.nodes) {
      for (ValueId& id : node.inputs) body(id);
      for (ValueId& id : node.outputs) body(id);
    }
  };
  for_each_reference([&](ValueId& id) {
    if (id != kAbsent) renumbered[id] = 0;
  });
  ValueId count = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (renumbered[i] == kAbsent) continue;
    renumbered[i] = count;
    if (static_cast<size_t>(count) != i) graph.values[count] = std::move(graph.values[i]);
    ++count;
  }
  if (static_cast<size_t>(count) == graph.values.size()) return false;
  graph.values.resize(count);
  for_each_reference([&](ValueId& id) {
    if (id != kAbsent) id = renumbered[id];
  });
  return true;
}

}  // namespace

bool eliminate_dead(Graph& graph) {
  std::vector<char> dead = find_dead_nodes(graph);
  size_t before = graph.nodes.size();
  erase_nodes(graph, dead);
  bool fewer_values = compact_values(graph);
  return fewer_values || graph.nodes.size() != before;
}

}  // namespace redfuser
