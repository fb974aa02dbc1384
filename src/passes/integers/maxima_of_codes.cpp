#include "passes/integers/maxima_of_codes.h"

#include <algorithm>
#include <cmath>

#include "ops/graph_editor.h"
#include "ops/registry.h"
#include "passes/integers/pointwise.h"
#include "passes/integers/scaled_values.h"

namespace redfuser::passes {
bool maxima_of_codes(ir::Graph& graph) {
  ops::GraphEditor editor(graph);
  const size_t nodes = graph.nodes.size();
  for (size_t n = 0; n < nodes; ++n) {
    const ir::Node node = graph.nodes[n];
    if (!ops::takes_maxima(graph, node)) continue;
    const auto scaled = scaled_value(graph, node.inputs[0]);
    if (!scaled || !(scaled->scale > 0) || !std::isfinite(scaled->scale)) continue;
    const auto producer = graph.values[static_cast<size_t>(node.inputs[0])].producer;
    ir::Node function = graph.nodes[static_cast<size_t>(producer)];
    if (!is_function_of(graph, function, scaled->codes)) continue;
    ir::Node maxima = node;
    maxima.inputs[0] = scaled->codes;
    maxima.outputs.clear();
    const std::string& name = graph.values[static_cast<size_t>(node.outputs[0])].name;
    const ir::ValueId codes = editor.add(static_cast<ir::NodeId>(n), maxima, name + "/codes");
    std::replace(function.inputs.begin(), function.inputs.end(), scaled->codes, codes);
    function.name = node.name, function.source = node.source;
    function.outputs = node.outputs;
    graph.nodes[n] = std::move(function);
  }
  if (editor.empty()) return false;
  editor.place();
  return true;
}

}  // namespace redfuser::passes
