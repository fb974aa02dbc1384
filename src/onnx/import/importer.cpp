#include "onnx/import/importer.h"

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "onnx/check/node_order.h"
#include "onnx/import/unsupported.h"
#include "onnx/proto/type_support.h"
#include "onnx/proto/value_types.h"
#include "ops/graph_editor.h"

namespace redfuser::onnx {
namespace {

// Of what a file declares, nodes are left out that read what cannot be used.
template <typename Action>
void attempt(const Action& action) {
  try {
    action();
  } catch (const UserError&) {
  }
}

}  // namespace

ir::Graph Importer::run_main(const AddInput& add) {
  Scope scope;
  const std::vector<int> order = begin(scope);
  reserve_names();
  for (const ::onnx::ValueInfoProto* input : main_inputs()) {
    scope.values[input->name()] = add(*input);
  }
  add_main(scope, order);
  check_values(scope);
  verify(graph_);
  return std::move(graph_);
}

ir::Graph Importer::run() {
  return run_main([&](const ::onnx::ValueInfoProto& input) { return add_declared_input(input); });
}

ir::Graph Importer::run(std::span<const BodyInput> inputs) {
  auto given = inputs.begin();
  return run_main(
      [&](const ::onnx::ValueInfoProto& input) { return add_body_input(input.name(), *given++); });
}

ir::Graph Importer::run(const Subgraph& body, std::span<const BodyInput> inputs) {
  Scope scope;
  auto input = inputs.begin();
  for (const auto* names : {&body.formals, &body.captured}) {
    for (const std::string& name : *names) {
      scope.values[name] = add_body_input(name, *input++);
      names_.insert(name);
    }
  }
  add_body(body, scope);
  verify(graph_);
  return std::move(graph_);
}

ir::ValueId Importer::add_body_input(const std::string& name, const BodyInput& input) {
  if (input.constant.defined()) return ops::add_constant(graph_, name, input.constant);
  const ir::ValueId id = graph_.add_value(name, input.dtype);
  graph_.values.back().list = input.list;
  for (size_t k = 0; k < input.dims.size(); ++k) {
    const int64_t size = input.dims[k];
    graph_.values.back().shape.push_back(
        size >= 0 ? graph_.pool->integer(size)
                  : graph_.pool->symbol(fmt::format("{}.dim{}", name, k)));
  }
  graph_.inputs.push_back(id);
  return id;
}

std::vector<std::string> Importer::refusals() {
  const ::onnx::GraphProto& main = model_->graph();
  Scope scope;
  scope.opsets = opsets_of(*model_);
  scope.owner = model_;
  reserve_names();
  for (const auto& tensor : main.initializer()) {
    if (given_by_run(tensor.name())) continue;
    attempt([&] {
      scope.values[tensor.name()] = ops::add_constant(graph_, tensor.name(), initial_value(tensor));
    });
  }
  for (const ::onnx::ValueInfoProto* input : main_inputs()) {
    attempt([&] { scope.values[input->name()] = add_declared_input(*input); });
  }
  std::vector<std::string> reasons = unsupported_nodes(*model_, functions_, path_);
  const ValueDeclarations types = declarations_of(main);
  for (const int index : order_of_all(main, path_)) {
    const ::onnx::NodeProto& node = main.node(index);
    std::string& reason = reasons[static_cast<size_t>(index)];
    if (reason.empty()) {
      const Mark before = mark();
      try {
        add_node(node, scope, {node_name(node, index), index});
      } catch (const UserError& error) {
        reason = error.what();
        roll_back(before);
      }
    }
    if (reason.empty()) continue;
    for (const std::string& output : node.output()) {
      scope.values.erase(output);
      const auto declared = types.find(output);
      if (declared == types.end()) continue;
      attempt([&] { scope.values[output] = add_declared_input(*declared->second); });
    }
  }
  return reasons;
}

// The main graph's names are kept; colliding names of an expansion are changed.
void Importer::reserve_names() {
  const ::onnx::GraphProto& main = model_->graph();
  for (const auto& input : main.input()) names_.insert(input.name());
  for (const auto& tensor : main.initializer()) names_.insert(tensor.name());
  for (const auto& node : main.node()) names_.insert(node.output().begin(), node.output().end());
}

ir::ValueId Importer::add_declared_input(const ::onnx::ValueInfoProto& input) {
  const ir::ValueId id = graph_.add_value(input.name());
  set_input_type(graph_, id, input, path_);
  graph_.inputs.push_back(id);
  return id;
}

void Importer::check_values(const Scope& scope) const {
  for (const auto& info : model_->graph().value_info()) {
    const auto found = scope.values.find(info.name());
    if (found == scope.values.end() || !info.type().has_tensor_type()) continue;
    check_declared_type(graph_.values[static_cast<size_t>(found->second)], info, "value", path_);
  }
}

void Importer::count_step() {
  if (++steps_ > kMaxNodes || graph_.nodes.size() > static_cast<size_t>(kMaxNodes)) {
    user_error("{}: it expands to more than {} nodes", path_, kMaxNodes);
  }
}

ir::ValueId Importer::renamed(ir::ValueId value, const std::string& name, const Origin& origin) {
  constexpr int kOpset = 16;  // the first whose Identity takes sequences and optionals
  ir::Node node = ops::new_node("Identity", {value}, {}, kOpset);
  node.name = origin.name;
  node.source = origin.source;
  const ir::ValueId result = graph_.add_value(name);
  node.outputs = {result};
  append(std::move(node));
  return result;
}

std::string Importer::name_for(const std::string& wanted) {
  std::string unique = wanted;
  while (!names_.insert(unique).second) {
    int& copies = copies_.try_emplace(wanted, 1).first->second;
    unique = fmt::format("{}_{}", wanted, ++copies);
  }
  return unique;
}

}  // namespace redfuser::onnx
