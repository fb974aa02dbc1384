#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "base/tensors/scales.h"
#include "onnx/check/node_check.h"
#include "onnx/check/node_order.h"
#include "onnx/functions/expansions.h"
#include "onnx/functions/schema_body.h"
#include "onnx/import/model_walk.h"
#include "onnx/import/wide_nodes.h"
#include "onnx/proto/type_support.h"
#include "onnx/proto/value_types.h"
#include "ops/graph_editor.h"
#include "ops/infer.h"
#include "ops/op_def.h"
#include "ops/registry.h"

namespace redfuser::onnx {
namespace {

Body function_body(const ::onnx::FunctionProto& function, const std::string& where) {
  Body body{{}, {}, {}, where};
  for (const auto& node : function.node()) body.nodes.push_back(&node);
  body.entries.assign(function.input().begin(), function.input().end());
  body.results.assign(function.output().begin(), function.output().end());
  return body;
}

// Trailing absent inputs and outputs are dropped.
void trim(std::vector<ir::ValueId>& ids) {
  while (!ids.empty() && ids.back() == ir::kAbsent) ids.pop_back();
}

BoundAttributes bound_by(const ::onnx::NodeProto& call, const ::onnx::FunctionProto& function) {
  BoundAttributes bound;
  for (const auto& preset : function.attribute_proto()) bound[preset.name()] = &preset;
  for (const auto& given : call.attribute()) bound[given.name()] = &given;
  return bound;
}

// The scales of a quantised operator's tensors: an own body has an input XScale for its input or
// output X, and divides by an output's.
void check_scales(const ir::Graph& graph, const ::onnx::FunctionProto& body,
                  const std::vector<ir::ValueId>& inputs, const std::string& where) {
  const auto has_scale = [](const std::string& formal) {
    return [&](const std::string& name) { return formal == name + "Scale"; };
  };
  const size_t count = std::min(inputs.size(), static_cast<size_t>(body.input_size()));
  for (size_t i = 0; i < count; ++i) {
    const std::string& formal = body.input(static_cast<int>(i));
    const bool divides = std::any_of(body.output().begin(), body.output().end(), has_scale(formal));
    const bool scales =
        divides || std::any_of(body.input().begin(), body.input().end(), has_scale(formal));
    if (!scales || inputs[i] == ir::kAbsent) continue;
    const ir::Value& scale = graph.values[static_cast<size_t>(inputs[i])];
    if (!scale.is_constant()) continue;
    const std::string fault = fault_of_scale(scale.name, scale.constant, divides);
    if (!fault.empty()) user_error("{}: {}", where, fault);
  }
}

}  // namespace

std::string ModelWalk::where(const ::onnx::NodeProto& node, const Origin& origin) const {
  return fmt::format("{}: [{}] node \"{}\"", path_, node.op_type(), origin.name);
}

void ModelWalk::add_node(const ::onnx::NodeProto& written, Scope& scope, const Origin& origin) {
  count_step();
  check_attributes(written, scope.in_function, where(written, origin));
  ::onnx::NodeProto storage;
  const ::onnx::NodeProto& node = bind_attributes(written, scope.attributes, storage);
  if (const ::onnx::FunctionProto* function = functions_.find(node)) {
    return add_call(node, *function, opsets_of(*function), {}, model_, scope, origin);
  }
  const std::string domain = normal_domain(node.domain());
  const auto version = scope.opsets.find(domain);
  if (version == scope.opsets.end()) {
    user_error("{}: the operator set \"{}\" is not imported", where(node, origin), domain);
  }
  check_node(node, domain, version->second, where(node, origin));
  // Tensors of a bound copy do not outlive this call.
  const AttributeSource source{&node == &storage ? nullptr : scope.owner, &external_,
                               where(node, origin)};
  if (domain.empty() && node.op_type() == "Constant") {
    return add_constant_node(node, source, scope);
  }
  if (domain.empty() && add_control(node, version->second, scope, origin)) return;
  if (const auto body = wide_body(node)) {
    return add_call(node, *body, opsets_of(*body), {}, nullptr, scope, origin);
  }
  const ops::OpDef* def = ops::find_op(domain, node.op_type(), version->second);
  // A kernel computes the forms without a body.
  if (def != nullptr && (def->lower != nullptr || !has_own_expansion(node))) {
    return add_primitive(node, *def, version->second, source, scope, origin);
  }
  if (def == nullptr && !has_body(node, scope.opsets)) {
    user_error("{}: {} of opset {} is not supported", source.where,
               qualified_name(domain, node.op_type()), version->second);
  }
  std::vector<::onnx::TypeProto> types;
  const std::vector<ir::ValueId> inputs = input_ids(node, scope, origin);
  for (const ir::ValueId id : inputs) types.push_back(type_of(graph_, id));
  const FunctionBody body = body_of(node, scope.opsets, types, source.where, def != nullptr);
  if (body.function == nullptr) {
    return add_primitive(node, *def, version->second, source, scope, origin);
  }
  if (has_own_expansion(node)) check_scales(graph_, *body.function, inputs, source.where);
  add_call(node, *body.function, body.opsets, body.types, nullptr, scope, origin);
}

void ModelWalk::add_constant_node(const ::onnx::NodeProto& node, const AttributeSource& source,
                                  Scope& scope) {
  if (node.output_size() != 1 || node.output(0).empty()) {
    user_error("{}: a Constant has one output", source.where);
  }
  Tensor tensor = constant_tensor(node, source);
  const std::string name = value_name(node.output(0), scope);
  scope.values[node.output(0)] = ops::add_constant(graph_, name, std::move(tensor));
}

void ModelWalk::add_primitive(const ::onnx::NodeProto& proto, const ops::OpDef& def, int opset,
                              const AttributeSource& source, Scope& scope, const Origin& origin) {
  ir::Node node;
  node.op = proto.op_type();
  node.domain = normal_domain(proto.domain());
  node.def = &def;
  node.opset = opset;
  node.name = origin.name;
  node.source = origin.source;
  node.inputs = input_ids(proto, scope, origin);
  if (scope.promotes) {
    const std::vector<DType> types = common_float_types(graph_, node);
    for (size_t i = 0; i < types.size(); ++i) {
      node.inputs[i] = as_type(node.inputs[i], types[i], scope, origin);
    }
  }
  node.attributes = read_attributes(proto, source);
  for (const auto& output : proto.output()) {
    node.outputs.push_back(ir::kAbsent);
    if (output.empty()) continue;
    node.outputs.back() = graph_.add_value(value_name(output, scope));
    scope.values[output] = node.outputs.back();
  }
  trim(node.inputs);
  trim(node.outputs);
  if (node.outputs.empty()) user_error("{}: it has no output", source.where);
  append(std::move(node));
}

void ModelWalk::append(ir::Node node) {
  const ir::NodeId id = ops::append_node(graph_, std::move(node));
  check_kinds_of_inputs(graph_, graph_.nodes.back());
  ops::infer_node(graph_, id);
  node_added(id);
  for (const ir::ValueId output : graph_.nodes.back().outputs) {
    if (output != ir::kAbsent) check_size(graph_, output);
  }
}

void ModelWalk::add_call(const ::onnx::NodeProto& node, const ::onnx::FunctionProto& function,
                         const Opsets& opsets, const BodyTypes& types,
                         const std::shared_ptr<const void>& owner, Scope& scope,
                         const Origin& origin) {
  const std::string here = where(node, origin);
  if (scope.depth >= kMaxCallDepth) {
    user_error("{}: functions nest more than {} deep", here, kMaxCallDepth);
  }
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size()) {
    user_error("{}: {} inputs and {} outputs where the function has {} and {}", here,
               node.input_size(), node.output_size(), function.input_size(),
               function.output_size());
  }
  Scope inner;
  inner.opsets = opsets;
  inner.attributes = bound_by(node, function);
  inner.owner = owner;
  inner.depth = scope.depth + 1;
  inner.in_function = true;
  inner.promotes = types.promotes;
  inner.prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  std::vector<ir::ValueId> inputs = input_ids(node, scope, origin);
  inputs.resize(static_cast<size_t>(function.input_size()), ir::kAbsent);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i < types.inputs.size()) inputs[i] = as_type(inputs[i], types.inputs[i], inner, origin);
    inner.values[function.input(static_cast<int>(i))] = inputs[i];
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    inner.results.emplace(function.output(i), value_name(node.output(i), scope));
  }
  run_body(function, inner, origin);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const auto result = inner.values.find(function.output(i));
    if (result == inner.values.end() || result->second == ir::kAbsent) {
      user_error("{}: the function's output \"{}\" is absent", here, function.output(i));
    }
    ir::ValueId value = named(result->second, inner.results.at(function.output(i)), origin);
    if (i < static_cast<int>(types.results.size())) {
      value = result_as_type(value, types.results[static_cast<size_t>(i)], inner, origin);
    }
    scope.values[node.output(i)] = value;
  }
}

void ModelWalk::run_body(const ::onnx::FunctionProto& function, Scope& scope,
                         const Origin& origin) {
  const std::string here = fmt::format("{}: node \"{}\": function {}", path_, origin.name,
                                       qualified_name(function.domain(), function.name()));
  Body body = function_body(function, here);
  // Computes only the outputs that the call uses.
  std::erase_if(body.results, [&](const auto& name) { return !scope.results.count(name); });
  for (const int index : live_order(body)) add_node(function.node(index), scope, origin);
}

// The caller's name for a function's result: the producer has it already unless the result is one
// of the function's inputs.
ir::ValueId ModelWalk::named(ir::ValueId value, const std::string& name, const Origin& origin) {
  if (graph_.values[static_cast<size_t>(value)].name == name) return value;
  return renamed(value, name, origin);
}

ir::ValueId ModelWalk::as_type(ir::ValueId value, DType dtype, const Scope& scope,
                               const Origin& origin) {
  if (value == ir::kAbsent || dtype == DType::Undefined) return value;
  if (graph_.values[static_cast<size_t>(value)].dtype == dtype) return value;
  return emit("Cast", {value}, {{"to", static_cast<int64_t>(dtype)}}, scope, origin);
}

ir::ValueId ModelWalk::result_as_type(ir::ValueId value, DType dtype, const Scope& scope,
                                      const Origin& origin) {
  const ir::ValueId result = as_type(value, dtype, scope, origin);
  if (result != value) {
    std::swap(graph_.values[static_cast<size_t>(result)].name,
              graph_.values[static_cast<size_t>(value)].name);
  }
  return result;
}

std::string ModelWalk::value_name(const std::string& name, const Scope& scope) {
  const auto result = scope.results.find(name);
  if (result != scope.results.end()) return result->second;
  if (scope.prefix.empty()) return name;
  return name_for(scope.prefix + name);
}

const ir::ValueId* ModelWalk::find_value(const std::string& name, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    const auto found = at->values.find(name);
    if (found != at->values.end()) return &found->second;
  }
  return nullptr;
}

std::vector<ir::ValueId> ModelWalk::input_ids(const ::onnx::NodeProto& node, const Scope& scope,
                                              const Origin& origin) const {
  std::vector<ir::ValueId> ids;
  for (const auto& input : node.input()) {
    if (input.empty()) {
      ids.push_back(ir::kAbsent);
      continue;
    }
    const ir::ValueId* found = find_value(input, scope);
    if (found == nullptr) {
      user_error("{}: input \"{}\" is produced by no node", where(node, origin), input);
    }
    ids.push_back(*found);
  }
  return ids;
}

}  // namespace redfuser::onnx
