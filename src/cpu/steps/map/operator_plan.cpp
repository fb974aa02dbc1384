#include "cpu/steps/map/operator_plan.h"

#include <cmath>
#include <set>
#include <vector>

#include "cpu/opaque/opaque.h"
#include "cpu/opaque/opaque_table.h"

namespace redfuser::cpu {
namespace {

class OperatorPlan final : public StepPlan {
 public:
  OperatorPlan(ir::NodeId node, OpaqueFunction function, int64_t bytes)
      : node_(node), function_(function), bytes_(bytes) {}

  int64_t inner_bytes() const override { return bytes_; }

  void run(RunContext& context) const override {
    const ir::Node& node = context.graph.nodes[static_cast<size_t>(node_)];
    // A step that reads elements need not have its node's constants.
    std::vector<ir::ValueId> lent;
    for (const ir::ValueId input : node.inputs) {
      if (input == ir::kAbsent) continue;
      Tensor& value = context.values[static_cast<size_t>(input)];
      if (value.defined()) continue;
      value = context.graph.values[static_cast<size_t>(input)].constant;
      lent.push_back(input);
    }
    OpaqueCall call(context, node, prepared_);
    function_(call);
    for (const ir::ValueId input : lent) context.values[static_cast<size_t>(input)] = Tensor();
  }

 private:
  ir::NodeId node_;
  OpaqueFunction function_;
  int64_t bytes_;
  mutable Prepared prepared_;
};

// The node that the step is, or null.
const ir::Node* node_of(const StepForm& form) {
  const auto& outputs = std::get<fuse::MapStep>(form.kind).outputs;
  const auto& values = form.graph.values;
  const auto output = static_cast<size_t>(outputs[0].value);
  if (outputs.size() != 1 || !form.inner.empty() || form.growing != nullptr) return nullptr;
  if (output >= values.size() || values[output].producer < 0) return nullptr;
  const ir::Node& node = form.graph.nodes[static_cast<size_t>(values[output].producer)];
  std::set<int64_t> reads;
  visit(outputs[0].body, [&](ir::Expr e) {
    if (e->op == ir::ExprOp::Read) reads.insert(e->integer);
  });
  for (const ir::ValueId input : node.inputs) {
    if (input == ir::kAbsent || reads.erase(input) > 0) continue;
    if (!values[static_cast<size_t>(input)].is_constant()) return nullptr;
  }
  return reads.empty() && node.outputs.size() == 1 ? &node : nullptr;
}

std::optional<OpaqueCost> cost_of(const StepForm& form, const ir::Node& node) {
  const OpaqueCostFunction cost = find_opaque_cost(node.domain, node.op);
  if (cost == nullptr) return std::nullopt;
  std::vector<Dims> inputs;
  for (const ir::ValueId input : node.inputs) {
    inputs.push_back(input == ir::kAbsent ? Dims() : memory_of(form, input));
  }
  const Dims output = memory_of(form, node.outputs[0]);
  if (element_count(inputs[0]) == 0 || element_count(output) == 0) return std::nullopt;
  return cost(ops::NodeView(form.graph, node), inputs, output);
}

}  // namespace

std::optional<double> operator_time(const StepForm& form) {
  const ir::Node* node = node_of(form);
  if (node == nullptr) return std::nullopt;
  const auto cost = cost_of(form, *node);
  if (!cost || cost->time == HUGE_VAL || cost->bytes > form.room) return std::nullopt;
  return cost->time / form.threads;
}

std::shared_ptr<const StepPlan> make_operator_plan(const StepForm& form) {
  const ir::Node* node = node_of(form);
  return std::make_shared<OperatorPlan>(static_cast<ir::NodeId>(node - form.graph.nodes.data()),
                                        find_opaque(node->domain, node->op),
                                        cost_of(form, *node)->bytes);
}

}  // namespace redfuser::cpu
