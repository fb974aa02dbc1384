// Control flow that only a run resolves: a node, whose outputs' types follow from its bodies.
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "base/type_codes.h"
#include "onnx/check/control_checks.h"
#include "onnx/check/node_order.h"
#include "onnx/import/model_walk.h"
#include "onnx/proto/value_types.h"
#include "ops/graph_editor.h"
#include "ops/op_def.h"

namespace redfuser::onnx {
namespace {

// Replaces references to attributes of the function around a subgraph by their values.
void bind_subgraphs(::onnx::NodeProto& node, const BoundAttributes& bound) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (!attribute.has_g()) continue;
    for (auto& inner : *attribute.mutable_g()->mutable_node()) {
      ::onnx::NodeProto storage;
      if (&bind_attributes(inner, bound, storage) == &storage) inner = std::move(storage);
      bind_subgraphs(inner, bound);
    }
  }
}

// Whether the size depends on a symbol that is newer than `watermark`.
bool is_newer(ir::Expr size, int64_t watermark) {
  bool found = false;
  visit(size, [&](ir::Expr e) { found |= e->op == ir::ExprOp::Symbol && e->integer > watermark; });
  return found;
}

DType declared_dtype(const ::onnx::TypeProto& type) {
  if (type.has_sequence_type()) return DType::Sequence;
  if (type.has_optional_type()) return DType::Optional;
  return dtype_of(type.tensor_type().elem_type());
}

}  // namespace

void ModelWalk::roll_back(const Mark& before) {
  graph_.nodes.resize(before.nodes);
  graph_.values.resize(before.values);
  graph_.size_checks.resize(before.size_checks);
  calls_.resize(before.calls);
}

ControlCall ModelWalk::call_of(const ::onnx::NodeProto& node, const Scope& scope,
                               const Origin& origin, std::vector<ir::ValueId>& inputs) const {
  ControlCall call;
  call.where = fmt::format("[{}] node \"{}\"", node.op_type(), origin.name);
  std::shared_ptr<const ::onnx::NodeProto> owned;
  if (scope.in_function || scope.owner == nullptr) {
    auto copy = std::make_shared<::onnx::NodeProto>(node);
    bind_subgraphs(*copy, scope.attributes);
    owned = std::move(copy);
  } else {
    owned = std::shared_ptr<const ::onnx::NodeProto>(scope.owner, &node);
  }
  inputs = input_ids(node, scope, origin);
  const bool is_if = node.op_type() == "If", is_loop = node.op_type() == "Loop";
  call.kind = is_if     ? ControlCall::Kind::If
              : is_loop ? ControlCall::Kind::Loop
                        : ControlCall::Kind::Scan;
  if (is_loop) inputs.resize(std::max<size_t>(inputs.size(), 2), ir::kAbsent);
  call.own_inputs = inputs.size();
  const std::vector<std::string> names =
      is_if ? std::vector<std::string>{"else_branch", "then_branch"}
            : std::vector<std::string>{"body"};
  for (const std::string& name : names) {
    Subgraph body;
    body.node = owned;
    body.graph = &find_attribute(*owned, name)->g();
    body.opsets = scope.opsets;
    body.promotes = scope.promotes;
    body.depth = scope.depth;
    body.prefix = scope.prefix;
    body.node_name = origin.name;
    body.source = origin.source;
    for (const auto& input : body.graph->input()) body.formals.push_back(input.name());
    call.captured.emplace_back();
    for (const std::string& outer : captured_names(*body.graph)) {
      const ir::ValueId* id = find_value(outer, scope);
      if (id == nullptr) continue;  // adding the body says so
      if (*id == ir::kAbsent) {
        body.absent.push_back(outer);
        continue;
      }
      const auto first = inputs.begin() + static_cast<std::ptrdiff_t>(call.own_inputs);
      auto place = std::find(first, inputs.end(), *id);
      call.captured.back().push_back(static_cast<size_t>(place - inputs.begin()));
      if (place == inputs.end()) inputs.push_back(*id);
      body.captured.push_back(outer);
    }
    call.bodies.push_back(std::move(body));
  }
  if (is_if) return call;
  const ::onnx::GraphProto& body = *call.bodies[0].graph;
  size_t scans = 0;
  if (!is_loop) scans = static_cast<size_t>(find_attribute(node, "num_scan_inputs")->i());
  call.states = call.own_inputs - (is_loop ? 2 : scans);
  const size_t first = call.states + (is_loop ? 1 : 0);
  const size_t outputs = static_cast<size_t>(body.output_size()) - first;
  call.input_axes = integers_for_each(node, "scan_input_axes", scans, call.where);
  call.input_backwards = directions_for_each(node, "scan_input_directions", scans, call.where);
  call.output_axes = integers_for_each(node, "scan_output_axes", outputs, call.where);
  call.output_backwards = directions_for_each(node, "scan_output_directions", outputs, call.where);
  for (size_t o = 0; o < outputs; ++o) {
    call.without_iterations.push_back(empty_stack(body.output(static_cast<int>(first + o))));
  }
  return call;
}

ModelWalk::ValueType ModelWalk::type_of_value(const ir::Value& value) {
  return {value.dtype, value.shape, is_list(value.dtype) ? value.list_form() : nullptr};
}

ir::ValueId ModelWalk::add_typed(const std::string& name, const ValueType& type) {
  const ir::ValueId id = graph_.add_value(name, type.dtype);
  graph_.values.back().shape = type.shape;
  graph_.values.back().list = type.list;
  return id;
}

ModelWalk::ValueTypes ModelWalk::computed_types(const ::onnx::GraphProto& body,
                                                const ValueTypes& arguments, const Scope& scope,
                                                const Origin& origin) {
  const Mark before = mark();
  const int64_t watermark = graph_.pool->fresh_symbol("size")->integer;
  std::vector<ir::ValueId> ids;
  for (const ValueType& argument : arguments) {
    ids.push_back(add_typed(name_for(scope.prefix + origin.name), argument));
  }
  ValueTypes types;
  try {
    for (const ir::ValueId id : run_subgraph(body, ids, {}, scope, origin)) {
      if (id == ir::kAbsent) needs_values("{}: a body's output is absent", origin.name);
      types.push_back(type_of_value(graph_.values[static_cast<size_t>(id)]));
    }
  } catch (...) {
    roll_back(before);
    throw;
  }
  roll_back(before);
  for (ValueType& type : types) {
    for (ir::Expr& size : type.shape) {
      if (is_newer(size, watermark)) size = graph_.pool->fresh_symbol("size");
    }
  }
  return types;
}

ModelWalk::ValueTypes ModelWalk::body_types(const ::onnx::GraphProto& body,
                                            const ValueTypes& arguments, const Scope& scope,
                                            const Origin& origin, std::exception_ptr& failure) {
  try {
    return computed_types(body, arguments, scope, origin);
  } catch (const UserError&) {
    failure = std::current_exception();
  }
  ValueTypes types;
  for (const auto& output : body.output()) {
    ValueType type{declared_dtype(output.type()), {}, nullptr};
    const bool list = is_list(type.dtype);
    if (list) type.list = declared_form(output.type());
    if (!list && (size_of(type.dtype) == 0 || !output.type().tensor_type().has_shape())) {
      return {};
    }
    const int rank = list ? 1 : output.type().tensor_type().shape().dim_size();
    for (int k = 0; k < rank; ++k) type.shape.push_back(graph_.pool->fresh_symbol("size"));
    types.push_back(std::move(type));
  }
  return types;
}

ModelWalk::ValueType ModelWalk::joined(const ValueType& a, const ValueType& b,
                                       const std::string& here) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) {
    needs_values("{}: only a run knows the type of an output: {} of rank {}, or {} of rank {}",
                 here, name_of(a.dtype), a.shape.size(), name_of(b.dtype), b.shape.size());
  }
  ValueType result = a;
  for (size_t k = 0; k < result.shape.size(); ++k) {
    if (a.shape[k] != b.shape[k]) result.shape[k] = graph_.pool->fresh_symbol("size");
  }
  if (a.list != nullptr) result.list = redfuser::joined(a.list, b.list);
  return result;
}

// A branch whose types are not known is taken to agree with the other one; a run checks it.
ModelWalk::ValueTypes ModelWalk::if_types(const ControlCall& call, const Scope& scope,
                                          const Origin& origin) {
  std::exception_ptr failure;
  ValueTypes types[2];
  for (size_t b = 0; b < 2; ++b) {
    types[b] = body_types(*call.bodies[b].graph, {}, scope, origin, failure);
  }
  if (types[0].empty() && types[1].empty()) std::rethrow_exception(failure);
  ValueTypes result;
  for (size_t i = 0; i < std::max(types[0].size(), types[1].size()); ++i) {
    if (!types[0].empty() && !types[1].empty()) {
      result.push_back(joined(types[0][i], types[1][i], call.where));
      continue;
    }
    result.push_back(types[0].empty() ? types[1][i] : types[0][i]);
    for (ir::Expr& size : result.back().shape) size = graph_.pool->fresh_symbol("size");
  }
  return result;
}

ModelWalk::ValueTypes ModelWalk::iteration_types(const ControlCall& call,
                                                 const std::vector<ir::ValueId>& inputs,
                                                 ir::Expr& length) const {
  ValueTypes types;
  const bool is_loop = call.kind == ControlCall::Kind::Loop;
  if (is_loop) types = {{DType::Int64, {}, nullptr}, {DType::Bool, {}, nullptr}};
  for (size_t i = types.size(); i < call.own_inputs; ++i) {
    if (inputs[i] == ir::kAbsent) needs_values("{}: input {} is absent", call.where, i);
    const ir::Value& value = graph_.values[static_cast<size_t>(inputs[i])];
    types.push_back(type_of_value(value));
    if (is_loop || i < call.states) continue;
    std::vector<ir::Expr>& shape = types.back().shape;
    int64_t axis = call.input_axes[i - call.states];
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    length = shape[static_cast<size_t>(axis)];
    shape.erase(shape.begin() + axis);
  }
  return types;
}

ModelWalk::ValueTypes ModelWalk::settled_types(const ControlCall& call, ValueTypes& arguments,
                                               const Scope& scope, const Origin& origin) {
  constexpr int kMaxRounds = 8;
  const bool is_loop = call.kind == ControlCall::Kind::Loop;
  const size_t first_argument = is_loop ? 2 : 0, first_result = is_loop ? 1 : 0;
  std::unordered_set<ir::Expr> open;
  for (int round = 0; round < kMaxRounds; ++round) {
    std::exception_ptr failure;
    const ValueTypes results = body_types(*call.bodies[0].graph, arguments, scope, origin, failure);
    if (results.empty()) std::rethrow_exception(failure);
    bool changed = false;
    for (size_t s = 0; s < call.states; ++s) {
      ValueType& state = arguments[first_argument + s];
      const ValueType both = joined(state, results[first_result + s], call.where);
      changed = changed || both.list != state.list;
      state.list = both.list;
      for (size_t k = 0; k < state.shape.size(); ++k) {
        if (both.shape[k] == state.shape[k] || open.count(state.shape[k]) > 0) continue;
        state.shape[k] = both.shape[k];
        open.insert(state.shape[k]);
        changed = true;
      }
    }
    if (!changed) return results;
  }
  needs_values("{}: its carried values change form", call.where);
}

ModelWalk::ValueTypes ModelWalk::loop_types(const ControlCall& call,
                                            const std::vector<ir::ValueId>& inputs,
                                            const Scope& scope, const Origin& origin) {
  const ir::Expr unknown = graph_.pool->fresh_symbol("iterations");
  ir::Expr length = unknown;
  ValueTypes arguments = iteration_types(call, inputs, length);
  const ValueTypes results = settled_types(call, arguments, scope, origin);
  const bool is_loop = call.kind == ControlCall::Kind::Loop;
  const auto states = arguments.begin() + (is_loop ? 2 : 0);
  ValueTypes types(states, states + static_cast<std::ptrdiff_t>(call.states));
  for (size_t r = call.states + (is_loop ? 1 : 0); r < results.size(); ++r) {
    ValueType stack = results[r];
    for (ir::Expr& size : stack.shape) {
      if (is_newer(size, unknown->integer)) size = graph_.pool->fresh_symbol("size");
    }
    const size_t output = types.size() - call.states;
    const auto rank = static_cast<int64_t>(stack.shape.size()) + 1;
    int64_t axis = call.output_axes[output];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
      user_error("{}: scan axis of output {} is out of range", call.where, output);
    }
    stack.shape.insert(stack.shape.begin() + axis, length);
    types.push_back(std::move(stack));
  }
  return types;
}

// A stack of this shape without iterations: sizes that only a run knows are 0.
Tensor ModelWalk::stack_without(const ValueType& stack, int64_t axis) {
  if (size_of(stack.dtype) == 0) return Tensor();
  Dims dims;
  for (const ir::Expr size : stack.shape) dims.push_back(size->is_constant() ? size->integer : 0);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  dims[static_cast<size_t>(axis)] = 0;
  return Tensor(stack.dtype, dims);
}

void ModelWalk::add_control_call(const ::onnx::NodeProto& node, int opset, Scope& scope,
                                 const Origin& origin, std::string reason) {
  std::vector<ir::ValueId> inputs;
  ControlCall call = call_of(node, scope, origin, inputs);
  call.reason = std::move(reason);
  const ValueTypes types = call.kind == ControlCall::Kind::If
                               ? if_types(call, scope, origin)
                               : loop_types(call, inputs, scope, origin);
  if (static_cast<size_t>(node.output_size()) > types.size()) {
    user_error("{}: its body has {} outputs, not {}", where(node, origin), types.size(),
               node.output_size());
  }
  for (size_t o = 0; o < call.without_iterations.size(); ++o) {
    Tensor& empty = call.without_iterations[o];
    if (!empty.defined()) empty = stack_without(types[call.states + o], call.output_axes[o]);
  }
  ir::Node added = call_node(node, opset, static_cast<int64_t>(calls_.size()));
  added.name = origin.name;
  added.source = origin.source;
  added.inputs = std::move(inputs);
  calls_.push_back(std::make_shared<const ControlCall>(std::move(call)));
  for (int i = 0; i < node.output_size(); ++i) {
    added.outputs.push_back(ir::kAbsent);
    if (node.output(i).empty()) continue;
    const ir::ValueId id =
        add_typed(value_name(node.output(i), scope), types[static_cast<size_t>(i)]);
    added.outputs.back() = id;
    scope.values[node.output(i)] = id;
  }
  ops::append_node(graph_, std::move(added));
}

void ModelWalk::add_body(const Subgraph& body, Scope& scope) {
  scope.opsets = body.opsets;
  scope.owner = body.node;
  scope.promotes = body.promotes;
  scope.depth = body.depth;
  scope.prefix = body.prefix;
  scope.is_program = true;
  for (const std::string& name : body.absent) scope.values[name] = ir::kAbsent;
  std::vector<ir::ValueId> formals;
  for (const std::string& name : body.formals) formals.push_back(scope.values.at(name));
  const Origin origin{body.node_name, body.source};
  std::unordered_set<ir::ValueId> seen;
  for (ir::ValueId id : run_subgraph(*body.graph, formals, {}, scope, origin)) {
    if (id == ir::kAbsent) {
      user_error("{}: node \"{}\": an output of its body is absent", path_, body.node_name);
    }
    if (!seen.insert(id).second) {
      const std::string& name = graph_.values[static_cast<size_t>(id)].name;
      id = renamed(id, name_for(fmt::format("{}/{}", body.node_name, name)), origin);
    }
    graph_.outputs.push_back(id);
  }
}

}  // namespace redfuser::onnx
