#include "onnx/import/importer.h"

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "onnx/check/node_order.h"
#include "onnx/import/unsupported.h"
#include "onnx/proto/constants.h"
#include "onnx/proto/tensor_proto.h"
#include "onnx/proto/value_types.h"

namespace redfuser::onnx {
namespace {

std::unordered_set<std::string> initializer_names(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> names;
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  return names;
}

Body main_body(const ::onnx::GraphProto& graph, const std::string& where) {
  Body body{{}, {}, {}, where};
  for (const auto& node : graph.node()) body.nodes.push_back(&node);
  for (const auto& tensor : graph.initializer()) body.entries.push_back(tensor.name());
  const auto initializers = initializer_names(graph);
  for (const auto& input : graph.input()) {
    if (input.name().empty()) user_error("{}: a graph input has no name", where);
    // An input with an initializer is one name: the initializer is its default, and RedFuser takes
    // it as a constant.
    if (!initializers.count(input.name())) body.entries.push_back(input.name());
  }
  for (const auto& output : graph.output()) body.results.push_back(output.name());
  return body;
}

}  // namespace

Importer::Importer(std::shared_ptr<const ::onnx::ModelProto> model, const std::string& path)
    : model_(std::move(model)), path_(path), external_(path), functions_(*model_, path) {
  graph_.pool = std::make_shared<ir::ExprPool>();
  graph_.name = model_->graph().name();
}

ir::Graph Importer::run() {
  Scope scope;
  const std::vector<int> order = begin(scope);
  add_inputs(scope);
  add_main(scope, order);
  check_values(scope);
  verify(graph_);
  return std::move(graph_);
}

NamedTensors Importer::evaluate(const NamedTensors& inputs, const Evaluate& evaluate) {
  evaluate_ = evaluate;
  Scope scope;
  const std::vector<int> order = begin(scope);
  give_inputs(scope, inputs);
  add_main(scope, order);
  NamedTensors outputs;
  for (const ir::ValueId id : graph_.outputs) {
    const ir::Value& value = graph_.values[static_cast<size_t>(id)];
    RF_CHECK(value.is_constant(), "output \"{}\" was not computed", value.name);
    outputs[value.name] = value.constant;
  }
  return outputs;
}

// Checks what needs no walk, and enters what is there before the nodes.
std::vector<int> Importer::begin(Scope& scope) {
  const ::onnx::GraphProto& main = model_->graph();
  if (main.sparse_initializer_size() != 0) {
    user_error("{}: sparse initializers are not supported (\"{}\")", path_,
               main.sparse_initializer(0).values().name());
  }
  check_types(main);
  const std::vector<int> order = live_order(main_body(main, path_));
  check_supported(*model_, order, functions_, path_);
  reserve_names();
  scope.opsets = opsets_of(*model_);
  scope.owner = model_;
  add_initializers(scope, order);
  return order;
}

void Importer::check_types(const ::onnx::GraphProto& main) const {
  const auto initializers = initializer_names(main);
  for (const auto& input : main.input()) {
    if (initializers.count(input.name())) continue;
    check_element_types(input.type(), fmt::format("{}: graph input \"{}\"", path_, input.name()));
  }
  for (const auto& output : main.output()) {
    check_element_types(output.type(),
                        fmt::format("{}: graph output \"{}\"", path_, output.name()));
  }
}

void Importer::add_main(Scope& scope, const std::vector<int>& order) {
  for (const int index : order) {
    const ::onnx::NodeProto& node = model_->graph().node(index);
    add_node(node, scope, {node_name(node, index), index});
  }
  set_outputs(scope);
}

// The main graph's names stay as they are; an expansion's names give way to them.
void Importer::reserve_names() {
  const ::onnx::GraphProto& main = model_->graph();
  for (const auto& input : main.input()) names_.insert(input.name());
  for (const auto& tensor : main.initializer()) names_.insert(tensor.name());
  for (const auto& node : main.node()) names_.insert(node.output().begin(), node.output().end());
}

void Importer::add_initializers(Scope& scope, const std::vector<int>& order) {
  const ::onnx::GraphProto& main = model_->graph();
  std::unordered_set<std::string> used;
  for (const int index : order) {
    for_each_input(main.node(index), [&](const std::string& name, bool) { used.insert(name); });
  }
  for (const auto& output : main.output()) used.insert(output.name());
  for (const auto& tensor : main.initializer()) {
    if (!used.count(tensor.name())) continue;
    scope.values[tensor.name()] =
        add_constant(graph_, tensor.name(), to_tensor(tensor, model_, &external_, path_));
  }
  for (const auto& input : main.input()) {
    const auto found = scope.values.find(input.name());
    if (found == scope.values.end()) continue;
    check_default(graph_.values[static_cast<size_t>(found->second)].constant, input, path_);
  }
}

void Importer::add_inputs(Scope& scope) {
  const auto initializers = initializer_names(model_->graph());
  for (const auto& input : model_->graph().input()) {
    if (initializers.count(input.name())) continue;
    const ir::ValueId id = graph_.add_value(input.name());
    set_input_type(graph_, id, input, path_);
    scope.values[input.name()] = id;
    graph_.inputs.push_back(id);
  }
}

void Importer::give_inputs(Scope& scope, const NamedTensors& inputs) {
  const auto initializers = initializer_names(model_->graph());
  for (const auto& input : model_->graph().input()) {
    if (initializers.count(input.name())) continue;
    const auto given = inputs.find(input.name());
    if (given == inputs.end() || !given->second.defined()) {
      user_error("input \"{}\" is missing", input.name());
    }
    check_given(given->second, input);
    scope.values[input.name()] = add_constant(graph_, input.name(), given->second);
    graph_.inputs.push_back(scope.values[input.name()]);
  }
}

void Importer::check_values(const Scope& scope) const {
  for (const auto& info : model_->graph().value_info()) {
    const auto found = scope.values.find(info.name());
    if (found == scope.values.end() || !info.type().has_tensor_type()) continue;
    check_declared_type(graph_.values[static_cast<size_t>(found->second)], info, "value", path_);
  }
}

void Importer::set_outputs(const Scope& scope) {
  std::unordered_set<std::string> seen;
  for (const auto& output : model_->graph().output()) {
    if (!seen.insert(output.name()).second) {
      user_error("{}: two graph outputs are named \"{}\"", path_, output.name());
    }
    const ir::ValueId id = scope.values.at(output.name());
    check_declared_type(graph_.values[static_cast<size_t>(id)], output, "output", path_);
    graph_.outputs.push_back(id);
  }
}

}  // namespace redfuser::onnx
