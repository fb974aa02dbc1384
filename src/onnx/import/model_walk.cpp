#include "onnx/import/model_walk.h"

#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "base/type_codes.h"
#include "onnx/check/node_order.h"
#include "onnx/import/unsupported.h"
#include "onnx/proto/tensor_proto.h"
#include "onnx/proto/value_types.h"
#include "ops/graph_editor.h"

namespace redfuser::onnx {
namespace {

Body main_body(const ::onnx::GraphProto& graph, const std::string& where) {
  Body body{{}, {}, {}, where};
  for (const auto& node : graph.node()) body.nodes.push_back(&node);
  for (const auto& tensor : graph.initializer()) body.entries.push_back(tensor.name());
  const auto initializers = initializer_names(graph);
  for (const auto& input : graph.input()) {
    if (input.name().empty()) user_error("{}: a graph input has no name", where);
    // An input may have an initializer as its default.
    if (!initializers.count(input.name())) body.entries.push_back(input.name());
  }
  for (const auto& output : graph.output()) body.results.push_back(output.name());
  return body;
}

}  // namespace

std::unordered_set<std::string> initializer_names(const ::onnx::GraphProto& graph) {
  std::unordered_set<std::string> names;
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  return names;
}

bool given_by_run(const NamedTensors* weights, const std::string& name) {
  if (weights == nullptr) return false;
  const auto weight = weights->find(name);
  return weight != weights->end() && !weight->second.defined();
}

std::vector<const ::onnx::ValueInfoProto*> free_inputs(const ::onnx::GraphProto& graph,
                                                       const NamedTensors* weights) {
  const auto initializers = initializer_names(graph);
  std::vector<const ::onnx::ValueInfoProto*> inputs;
  for (const auto& input : graph.input()) {
    const bool constant = initializers.count(input.name()) > 0 ||
                          (weights != nullptr && weights->count(input.name()) > 0);
    if (!constant || given_by_run(weights, input.name())) inputs.push_back(&input);
  }
  return inputs;
}

std::vector<const ::onnx::ValueInfoProto*> overridable_inputs(const ::onnx::ModelProto& model) {
  constexpr int64_t kFirstVersion = 4;
  std::vector<const ::onnx::ValueInfoProto*> inputs;
  if (model.ir_version() < kFirstVersion) return inputs;
  const auto initializers = initializer_names(model.graph());
  for (const auto& input : model.graph().input()) {
    if (initializers.count(input.name())) inputs.push_back(&input);
  }
  return inputs;
}

ModelWalk::ModelWalk(std::shared_ptr<const ::onnx::ModelProto> model, const std::string& path,
                     std::shared_ptr<const NamedTensors> weights)
    : model_(std::move(model)),
      path_(path),
      functions_(*model_, path),
      weights_(std::move(weights)),
      external_(path) {
  graph_.pool = std::make_shared<ir::ExprPool>();
  graph_.name = model_->graph().name();
  if (weights_ == nullptr) return;
  auto names = initializer_names(model_->graph());
  for (const auto& input : model_->graph().input()) names.insert(input.name());
  for (const auto& [name, tensor] : *weights_) {
    if (names.count(name) == 0) {
      user_error("{}: a weight is given for \"{}\", which is not an initializer", path_, name);
    }
  }
}

const Tensor* ModelWalk::value_of_input(const std::string& name) const {
  if (weights_ == nullptr) return nullptr;
  const auto value = weights_->find(name);
  if (value == weights_->end() || initializer_names(model_->graph()).count(name) > 0) {
    return nullptr;
  }
  return &value->second;
}

std::vector<const ::onnx::ValueInfoProto*> ModelWalk::main_inputs() const {
  return free_inputs(model_->graph(), weights_.get());
}

Tensor ModelWalk::initial_value(const ::onnx::TensorProto& tensor) {
  const bool given = weights_ != nullptr && weights_->count(tensor.name()) > 0;
  if (!given) return to_tensor(tensor, model_, &external_, path_);
  const Tensor& weight = weights_->at(tensor.name());
  const Dims dims(tensor.dims().begin(), tensor.dims().end());
  if (weight.dtype() != dtype_of(tensor.data_type()) || weight.dims() != dims) {
    user_error("{}: the weight given for \"{}\" is {}, but the initializer is {}", path_,
               tensor.name(), describe(weight),
               describe(Tensor::wrap(dtype_of(tensor.data_type()), dims, nullptr, nullptr)));
  }
  return weight;
}

// Validates the model and registers initializers.
std::vector<int> ModelWalk::begin(Scope& scope) {
  const ::onnx::GraphProto& main = model_->graph();
  check_types(main);
  const std::vector<int> order = live_order(main_body(main, path_));
  check_supported(*model_, order, functions_, path_);
  scope.opsets = opsets_of(*model_);
  scope.owner = model_;
  add_initializers(scope, order);
  return order;
}

void ModelWalk::check_types(const ::onnx::GraphProto& main) const {
  for (const ::onnx::ValueInfoProto* input : main_inputs()) {
    check_element_types(input->type(), fmt::format("{}: graph input \"{}\"", path_, input->name()));
  }
  for (const auto& output : main.output()) {
    check_element_types(output.type(),
                        fmt::format("{}: graph output \"{}\"", path_, output.name()));
  }
}

void ModelWalk::add_main(Scope& scope, const std::vector<int>& order) {
  for (const int index : order) {
    const ::onnx::NodeProto& node = model_->graph().node(index);
    add_node(node, scope, {node_name(node, index), index});
  }
  set_outputs(scope);
}

void ModelWalk::add_initializers(Scope& scope, const std::vector<int>& order) {
  const ::onnx::GraphProto& main = model_->graph();
  std::unordered_set<std::string> used;
  for (const int index : order) {
    for_each_input(main.node(index), [&](const std::string& name, bool) { used.insert(name); });
  }
  for (const auto& output : main.output()) used.insert(output.name());
  for (const auto& tensor : main.initializer()) {
    if (!used.count(tensor.name()) || given_by_run(tensor.name())) continue;
    scope.values[tensor.name()] = ops::add_constant(graph_, tensor.name(), initial_value(tensor));
  }
  for (const auto& input : main.input()) {
    const Tensor* value = value_of_input(input.name());
    if (value == nullptr) continue;
    check_given(*value, input);
    scope.values[input.name()] = ops::add_constant(graph_, input.name(), *value);
  }
  for (const auto& input : main.input()) {
    const auto found = scope.values.find(input.name());
    if (found == scope.values.end()) continue;
    check_default(graph_.values[static_cast<size_t>(found->second)].constant, input, path_);
  }
}

void ModelWalk::set_outputs(const Scope& scope) {
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
