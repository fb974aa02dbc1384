#include "passes/node_evaluator.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory_budget.h"
#include "cpu/opaque/opaque_shapes.h"
#include "cpu/step.h"
#include "cpu/steps/position_guard.h"
#include "ops/op_def.h"

namespace redfuser {
namespace {

// Reductions that vary along fewer axes than what holds them (a maximum of a row in each of its
// elements) are computed first, once for the axes they vary along, into values of their own.
class InnerReductions {
 public:
  InnerReductions(Graph& graph, std::vector<Tensor>& tensors, RunContext& context,
                  const std::vector<Expr>& axes)
      : graph_(graph), tensors_(tensors), context_(context) {
    for (Expr axis : axes) {
      if (axis->op == ExprOp::Axis && !axis->extent()->is_constant(1)) axes_.push_back(axis);
    }
  }
  ~InnerReductions() {
    for (const ValueId id : made_) tensors_[static_cast<size_t>(id)] = Tensor();
  }
  InnerReductions(const InnerReductions&) = delete;
  InnerReductions& operator=(const InnerReductions&) = delete;

  Expr replaced(Expr body, bool inside = false) {
    return graph_.pool->rewrite(body, [&](Expr node) -> Expr {
      if (node->op != ExprOp::Reduce) return nullptr;
      std::vector<Expr> used;
      std::copy_if(axes_.begin(), axes_.end(), std::back_inserter(used),
                   [&](Expr axis) { return node->depends_on(axis); });
      const bool varies_less = inside || used.size() < axes_.size();
      const bool open = used.size() < node->free_axes.size();
      // A temporary would round what is computed wider than half precision.
      const bool rounds = node->dtype == DType::Float16 || node->dtype == DType::BFloat16;
      if (!varies_less || open || rounds) return reduction(node);
      return computed(reduction(node), used);
    });
  }

 private:
  Expr reduction(Expr node) {
    return graph_.pool->reduce(node->reduction, node->bound_axis(), replaced(node->body(), true),
                               node->args.size() > 2 ? node->args[2] : nullptr, node->integer != 0);
  }

  Expr computed(Expr body, const std::vector<Expr>& axes) {
    const ValueId id = graph_.add_value(fmt::format("reduction{}", graph_.values.size()));
    Value& value = graph_.values.back();
    value.dtype = body->dtype;
    for (Expr axis : axes) value.shape.push_back(axis->extent());
    if (tensors_.size() < graph_.values.size()) {
      tensors_.resize(graph_.values.size() * 2);
      context_.values = tensors_;
    }
    made_.push_back(id);
    make_kernel(graph_, ReduceStep{id, axes, body})->run(context_);
    return graph_.pool->read(id, body->dtype, axes);
  }

  Graph& graph_;
  std::vector<Tensor>& tensors_;
  RunContext& context_;
  std::vector<Expr> axes_;
  std::vector<ValueId> made_;
};

// Throws UserError for positions among the inputs that are out of range.
void refuse_positions(const Graph& graph, const Node& node, RunContext& context) {
  const auto id = static_cast<NodeId>(&node - graph.nodes.data());
  for (const PositionGuard& guard : position_guards(graph, id, [](ValueId) { return false; })) {
    guard.run(context);
  }
}

void run_lowered(Graph& graph, const Node& node, std::vector<Tensor>& tensors,
                 RunContext& context) {
  bind_runtime_shape(context, node);
  refuse_positions(graph, node, context);
  for (const ValueId output : node.outputs) {
    if (output == kAbsent || graph.values[static_cast<size_t>(output)].is_constant()) continue;
    std::vector<Expr> axes = output_axes(graph, output);
    Lowering lowering(graph, [output](ValueId value) { return value == output; });
    InnerReductions inner(graph, tensors, context, axes);
    const Expr body = inner.replaced(lowering.element(output, axes));
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
      run_lowered(graph, node, tensors_, context);
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
