#include "onnx/import/interpreter.h"

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "onnx/proto/type_support.h"
#include "onnx/proto/value_types.h"
#include "ops/graph_editor.h"
#include "ops/infer.h"
#include "ops/op_def.h"

namespace redfuser::onnx {

NamedTensors Interpreter::run(const NamedTensors& inputs) {
  Scope scope;
  const std::vector<int> order = begin(scope);
  give_inputs(scope, inputs);
  add_main(scope, order);
  NamedTensors outputs;
  for (const ir::ValueId id : graph_.outputs) {
    outputs[graph_.values[static_cast<size_t>(id)].name] = computed(id);
  }
  return outputs;
}

std::vector<Tensor> Interpreter::run(const Subgraph& body, std::span<const Tensor> inputs) {
  Scope scope;
  auto input = inputs.begin();
  for (const auto* names : {&body.formals, &body.captured}) {
    for (const std::string& name : *names) {
      scope.values[name] = ops::add_constant(graph_, name, *input++);
      graph_.inputs.push_back(scope.values[name]);
    }
  }
  add_body(body, scope);
  std::vector<Tensor> outputs;
  for (const ir::ValueId id : graph_.outputs) outputs.push_back(computed(id));
  return outputs;
}

const Tensor& Interpreter::computed(ir::ValueId id) const {
  const ir::Value& value = graph_.values[static_cast<size_t>(id)];
  RF_CHECK(value.is_constant(), "output \"{}\" was not computed", value.name);
  return value.constant;
}

void Interpreter::give_inputs(Scope& scope, const NamedTensors& inputs) {
  const auto initializers = initializer_names(model_->graph());
  for (const auto& input : model_->graph().input()) {
    if (initializers.count(input.name())) continue;
    const auto given = inputs.find(input.name());
    if (given == inputs.end() || !given->second.defined()) {
      user_error("input \"{}\" is missing", input.name());
    }
    check_given(given->second, input);
    scope.values[input.name()] = ops::add_constant(graph_, input.name(), given->second);
    graph_.inputs.push_back(scope.values[input.name()]);
  }
}

// The number of computed nodes is not limited, but the number of nodes in the graph is, and that of
// iterations without a node.
void Interpreter::count_step() {
  if (++steps_ > kMaxNodes) {
    user_error("{}: {} iterations compute nothing", path_, kMaxNodes);
  }
  if (graph_.nodes.size() > static_cast<size_t>(kMaxNodes)) {
    user_error("{}: it expands to more than {} nodes", path_, kMaxNodes);
  }
}

void Interpreter::node_added(ir::NodeId node) {
  evaluate_(graph_, node);
  steps_ = 0;
}

ir::ValueId Interpreter::renamed(ir::ValueId value, const std::string& name, const Origin&) {
  return ops::add_constant(graph_, name, graph_.values[static_cast<size_t>(value)].constant);
}

void Interpreter::iteration_done(Mark& mark, std::vector<ir::ValueId>& parts,
                                 std::vector<ir::ValueId>& states) {
  std::vector<ir::Value> moved;
  size_t lasting = 0;
  for (std::vector<ir::ValueId>* ids : {&parts, &states}) {
    for (ir::ValueId& id : *ids) {
      if (id == ir::kAbsent || static_cast<size_t>(id) < mark.values) continue;
      const ir::Value& value = graph_.values[static_cast<size_t>(id)];
      RF_CHECK(value.is_constant(), "\"{}\" was not computed", value.name);
      moved.push_back(value);
      moved.back().producer = -1;
      id = static_cast<ir::ValueId>(mark.values + moved.size() - 1);
    }
    if (ids == &parts) lasting = moved.size();
  }
  graph_.nodes.resize(mark.nodes);
  graph_.values.resize(mark.values);
  for (ir::Value& value : moved) graph_.values.push_back(std::move(value));
  mark.values += lasting;
  renew_pool();
}

// Pools only grow, and runs may be long. Computed values only need the expressions of their sizes
// and elements.
void Interpreter::renew_pool() {
  constexpr size_t kMany = 1 << 17;
  if (graph_.pool->size() < kMany || !graph_.size_checks.empty()) return;
  graph_.pool = std::make_shared<ir::ExprPool>();
  for (size_t id = 0; id < graph_.values.size(); ++id) {
    const Tensor constant = graph_.values[id].constant;
    graph_.values[id].elements.clear();
    graph_.values[id].has_elements = false;
    ops::set_constant(graph_, static_cast<ir::ValueId>(id), constant);
  }
}

}  // namespace redfuser::onnx
