#include "onnx/import/interpreter.h"

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "onnx/proto/type_support.h"
#include "ops/graph_editor.h"
#include "ops/infer.h"
#include "ops/op_def.h"

namespace redfuser::onnx {

std::vector<Tensor> Interpreter::run(std::span<const Tensor> inputs) {
  Scope scope;
  const std::vector<int> order = begin(scope);
  auto given = inputs.begin();
  for (const ::onnx::ValueInfoProto* input : main_inputs()) {
    give_input(input->name(), *given++, scope);
  }
  add_main(scope, order);
  return outputs();
}

std::vector<Tensor> Interpreter::run(const Subgraph& body, std::span<const Tensor> inputs) {
  Scope scope;
  auto input = inputs.begin();
  for (const auto* names : {&body.formals, &body.captured}) {
    for (const std::string& name : *names) give_input(name, *input++, scope);
  }
  add_body(body, scope);
  return outputs();
}

std::vector<Tensor> Interpreter::outputs() const {
  std::vector<Tensor> outputs;
  for (const ir::ValueId id : graph_.outputs) {
    const ir::Value& value = graph_.values[static_cast<size_t>(id)];
    RF_CHECK(value.is_constant(), "output \"{}\" was not computed", value.name);
    outputs.push_back(value.constant);
  }
  return outputs;
}

void Interpreter::give_input(const std::string& name, const Tensor& tensor, Scope& scope) {
  scope.values[name] = ops::add_constant(graph_, name, tensor);
  graph_.inputs.push_back(scope.values[name]);
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
