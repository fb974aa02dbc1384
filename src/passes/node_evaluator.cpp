#include "passes/node_evaluator.h"

#include <algorithm>

#include "base/error.h"
#include "base/memory_budget.h"
#include "cpu/checks/position_guard.h"
#include "cpu/opaque/opaque.h"
#include "cpu/opaque/opaque_shapes.h"
#include "cpu/select/make_kernel.h"
#include "cpu/step.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::passes {
namespace {

// Reductions that depend on fewer axes than the expression around them (a row's maximum in each of
// its elements) are computed first, into values of their own.
class InnerReductions {
 public:
  InnerReductions(ir::Graph& graph, std::vector<Tensor>& tensors, cpu::RunContext& context,
                  const std::vector<ir::Expr>& axes)
      : graph_(graph), tensors_(tensors), context_(context) {
    for (ir::Expr axis : axes) {
      if (axis->op == ir::ExprOp::Axis && !axis->extent()->is_constant(1)) axes_.push_back(axis);
    }
  }
  ~InnerReductions() {
    for (const ir::ValueId id : made_) tensors_[static_cast<size_t>(id)] = Tensor();
  }
  InnerReductions(const InnerReductions&) = delete;
  InnerReductions& operator=(const InnerReductions&) = delete;

  ir::Expr replaced(ir::Expr body, bool inside = false) {
    return graph_.pool->rewrite(body, [&](ir::Expr node) -> ir::Expr {
      if (node->op != ir::ExprOp::Reduce) return nullptr;
      std::vector<ir::Expr> used;
      std::copy_if(axes_.begin(), axes_.end(), std::back_inserter(used),
                   [&](ir::Expr axis) { return node->depends_on(axis); });
      const bool varies_less = inside || used.size() < axes_.size();
      const bool open = used.size() < node->free_axes.size();
      // A temporary in a 16-bit type would round a result that is computed in fp32.
      const bool rounds = node->dtype == DType::Float16 || node->dtype == DType::BFloat16;
      if (!varies_less || open || rounds) return reduction(node);
      return computed(reduction(node), used);
    });
  }

 private:
  ir::Expr reduction(ir::Expr node) {
    return graph_.pool->reduce(node->reduction, node->bound_axis(), replaced(node->body(), true),
                               node->args.size() > 2 ? node->args[2] : nullptr, node->integer != 0);
  }

  ir::Expr computed(ir::Expr body, const std::vector<ir::Expr>& axes) {
    const ir::ValueId id = graph_.add_value(fmt::format("reduction{}", graph_.values.size()));
    ir::Value& value = graph_.values.back();
    value.dtype = body->dtype;
    for (ir::Expr axis : axes) value.shape.push_back(axis->extent());
    if (tensors_.size() < graph_.values.size()) {
      tensors_.resize(graph_.values.size() * 2);
      context_.values = tensors_;
    }
    made_.push_back(id);
    cpu::make_kernel(graph_, fuse::ReduceStep{id, axes, body})->run(context_);
    return graph_.pool->read(id, body->dtype, axes);
  }

  ir::Graph& graph_;
  std::vector<Tensor>& tensors_;
  cpu::RunContext& context_;
  std::vector<ir::Expr> axes_;
  std::vector<ir::ValueId> made_;
};

// Throws UserError for input positions that are out of range.
void refuse_positions(const ir::Graph& graph, const ir::Node& node, cpu::RunContext& context) {
  const auto id = static_cast<ir::NodeId>(&node - graph.nodes.data());
  for (const cpu::PositionGuard& guard :
       cpu::position_guards(graph, id, [](ir::ValueId) { return false; })) {
    guard.run(context);
  }
}

void run_lowered(ir::Graph& graph, const ir::Node& node, std::vector<Tensor>& tensors,
                 cpu::RunContext& context) {
  bind_runtime_shape(context, node);
  refuse_positions(graph, node, context);
  for (const ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent || graph.values[static_cast<size_t>(output)].is_constant()) continue;
    std::vector<ir::Expr> axes = ops::output_axes(graph, output);
    ops::Lowering lowering(graph, [output](ir::ValueId value) { return value == output; });
    InnerReductions inner(graph, tensors, context, axes);
    const ir::Expr body = inner.replaced(lowering.element(output, axes));
    if (body->bound_level > 0) {
      cpu::make_kernel(graph, fuse::ReduceStep{output, std::move(axes), body})->run(context);
    } else {
      cpu::make_kernel(graph, fuse::MapStep{std::move(axes), {{output, body}}})->run(context);
    }
  }
}

}  // namespace

void NodeEvaluator::evaluate(ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.nodes[static_cast<size_t>(id)];
  if (tensors_.size() < graph.values.size()) tensors_.resize(graph.values.size() * 2);
  cpu::RunContext context{graph, tensors_, symbols_, pool_};
  for (const ir::ValueId input : node.inputs) {
    if (input == ir::kAbsent) continue;
    const ir::Value& value = graph.values[static_cast<size_t>(input)];
    RF_CHECK(value.is_constant(), "node \"{}\" reads \"{}\", which is not computed", node.name,
             value.name);
    tensors_[static_cast<size_t>(input)] = value.constant;
  }
  try {
    if (node.def->lower != nullptr) {
      run_lowered(graph, node, tensors_, context);
    } else {
      cpu::make_kernel(graph, fuse::OpaqueStep{id})->run(context);
    }
  } catch (const MemoryLimitError& error) {
    user_error("[{}] node \"{}\": {}", node.op, node.name, error.what());
  }
  for (const ir::ValueId output : node.outputs) {
    if (output == ir::kAbsent) continue;
    Tensor& tensor = tensors_[static_cast<size_t>(output)];
    if (tensor.defined()) ops::set_constant(graph, output, std::move(tensor));
    tensor = Tensor();
    RF_CHECK(graph.values[static_cast<size_t>(output)].is_constant(),
             "node \"{}\" did not compute \"{}\"", node.name,
             graph.values[static_cast<size_t>(output)].name);
  }
  for (const ir::ValueId input : node.inputs) {
    if (input != ir::kAbsent) tensors_[static_cast<size_t>(input)] = Tensor();
  }
}

}  // namespace redfuser::passes
