#include <fmt/format.h>

#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace redfuser {
namespace {

// The value of which `id` is a copy, element by element; kAbsent if it is none.
ValueId copied_value(const Graph& graph, ValueId id) {
  const Value& value = graph.values[id];
  if (value.is_constant() || value.has_elements || value.indexed) return kAbsent;
  std::vector<Expr> axes;
  for (Expr size : value.shape) {
    axes.push_back(graph.pool->shared_axis(fmt::format("index{}", axes.size()), size));
  }
  Lowering lowering(graph, [id](ValueId inlined) { return inlined == id; });
  Expr element = lowering.element(id, axes);
  if (element->op != ExprOp::Read) return kAbsent;
  auto source = static_cast<ValueId>(element->integer);
  if (source == id || graph.values[source].shape != value.shape) return kAbsent;
  for (size_t i = 0; i < axes.size(); ++i) {
    // A dimension of one element is read at 0.
    if (element->args[i] != axes[i] && !value.shape[i]->is_constant(1)) return kAbsent;
  }
  return source;
}

}  // namespace

bool eliminate_identity(Graph& graph) {
  Rewrite rewrite(graph);
  std::vector<char> used(graph.values.size());
  for (ValueId output : graph.outputs) used[output] = 1;
  for (const Node& node : graph.nodes) {
    for (ValueId input : node.inputs) {
      if (input != kAbsent) used[input] = 1;
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.def == nullptr || node.def->lower == nullptr) continue;
    bool needed = false;
    for (ValueId output : node.outputs) {
      if (output == kAbsent || !used[output]) continue;
      ValueId source = copied_value(graph, output);
      if (source == kAbsent || !rewrite.replace(output, source)) needed = true;
    }
    if (!needed) rewrite.remove(static_cast<NodeId>(n));
  }
  return rewrite.apply();
}

}  // namespace redfuser
