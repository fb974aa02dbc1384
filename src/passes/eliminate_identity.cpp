#include "ops/lowering.h"
#include "ops/op_def.h"
#include "passes/passes.h"
#include "passes/rewriting/rewrite.h"

namespace redfuser::passes {
namespace {

// The value of which `id` is an elementwise copy; kAbsent if there is none.
ir::ValueId copied_value(const ir::Graph& graph, ir::ValueId id) {
  const ir::Value& value = graph.values[id];
  if (value.is_constant() || value.has_elements || value.indexed) return ir::kAbsent;
  const std::vector<ir::Expr> axes = ops::shared_axes(graph, id);
  ops::Lowering lowering(graph, [id](ir::ValueId inlined) { return inlined == id; });
  ir::Expr element = lowering.element(id, axes);
  if (element->op != ir::ExprOp::Read) return ir::kAbsent;
  auto source = static_cast<ir::ValueId>(element->integer);
  if (source == id || graph.values[source].shape != value.shape) return ir::kAbsent;
  for (size_t i = 0; i < axes.size(); ++i) {
    // A dimension of one element is read at 0.
    if (element->args[i] != axes[i] && !value.shape[i]->is_constant(1)) return ir::kAbsent;
  }
  return source;
}

}  // namespace

bool eliminate_identity(ir::Graph& graph) {
  Rewrite rewrite(graph);
  std::vector<char> used(graph.values.size());
  for (ir::ValueId output : graph.outputs) used[output] = 1;
  for (const ir::Node& node : graph.nodes) {
    for (ir::ValueId input : node.inputs) {
      if (input != ir::kAbsent) used[input] = 1;
    }
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    if (node.def == nullptr || node.def->lower == nullptr) continue;
    bool needed = false;
    for (ir::ValueId output : node.outputs) {
      if (output == ir::kAbsent || !used[output]) continue;
      ir::ValueId source = copied_value(graph, output);
      if (source == ir::kAbsent || !rewrite.replace(output, source)) needed = true;
    }
    if (!needed) rewrite.remove(static_cast<ir::NodeId>(n));
  }
  return rewrite.apply();
}

}  // namespace redfuser::passes
