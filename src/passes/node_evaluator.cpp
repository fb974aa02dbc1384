#include "passes/node_evaluator.h"

#include "base/error.h"
#include "base/memory_budget.h"
#include "cpu/kernel.h"
#include "cpu/opaque_shapes.h"
#include "ops/op_def.h"

namespace redfuser {
namespace {

void run_lowered(const Graph& graph, const Node& node, RunContext& context) {
  bind_runtime_shape(context, node);
  for (const ValueId output : node.outputs) {
    if (output == kAbsent || graph.values[static_cast<size_t>(output)].is_constant()) continue;
    std::vector<Expr> axes = output_axes(graph, output);
    Lowering lowering(graph, [output](ValueId value) { return value == output; });
    const Expr body = lowering.element(output, axes);
    if (body->bound_level > 0) {
      make_kernel(graph, ReduceStep{output, std::move(axes), body})->run(context);
    } else {
      make_kernel(graph, MapStep{std::move(axes), {{output, body}}})->run(context);
    }
  }
}

}  // namespace

void NodeEvaluator::evaluate(Graph& graph, NodeId id) {
  const Node& node = graph.nodes[static_cast<size_t>(id)];
  if (tensors_.size() < graph.values.size()) tensors_.resize(graph.values.size() * 2);
  RunContext context{graph, tensors_, symbols_, pool_};
  for (const ValueId input : node.inputs) {
    if (input == kAbsent) continue;
    const Value& value = graph.values[static_cast<size_t>(input)];
    RF_CHECK(value.is_constant(), "node \"{}\" reads \"{}\", which is not computed", node.name,
             value.name);
    tensors_[static_cast<size_t>(input)] = value.constant;
  }
  try {
    if (node.def->lower != nullptr) {
      run_lowered(graph, node, context);
    } else {
      make_kernel(graph, OpaqueStep{id})->run(context);
    }
  } catch (const MemoryLimitError& error) {
    user_error("[{}] node \"{}\": {}", node.op, node.name, error.what());
  }
  for (const ValueId output : node.outputs) {
    if (output == kAbsent) continue;
    Tensor& tensor = tensors_[static_cast<size_t>(output)];
    if (tensor.defined()) set_constant(graph, output, std::move(tensor));
    tensor = Tensor();
    RF_CHECK(graph.values[static_cast<size_t>(output)].is_constant(),
             "node \"{}\" did not compute \"{}\"", node.name,
             graph.values[static_cast<size_t>(output)].name);
  }
  for (const ValueId input : node.inputs) {
    if (input != kAbsent) tensors_[static_cast<size_t>(input)] = Tensor();
  }
}

}  // namespace redfuser
