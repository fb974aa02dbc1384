// If, Loop and Scan: their bodies become nodes of the graph, as often as they run.
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "base/type_codes.h"
#include "onnx/check/control_checks.h"
#include "onnx/check/node_order.h"
#include "onnx/import/model_walk.h"
#include "onnx/proto/tensor_proto.h"
#include "onnx/proto/type_support.h"
#include "onnx/proto/value_types.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::onnx {
namespace {

Tensor scalar_of(int64_t value) {
  Tensor tensor(DType::Int64, {});
  *tensor.as<int64_t>() = value;
  return tensor;
}

Tensor scalar_of_bool(bool value) {
  Tensor tensor(DType::Bool, {});
  *tensor.as<bool>() = value;
  return tensor;
}

// The only element of a boolean or integer value; nullopt if it is known at run time only.
std::optional<int64_t> known_scalar(const ir::Value& value) {
  if (value.has_elements && value.elements.size() == 1 && value.elements[0]->is_constant()) {
    return value.elements[0]->integer;
  }
  if (!value.is_constant() || value.constant.size() != 1) return std::nullopt;
  if (value.dtype == DType::Bool) return *value.constant.as<bool>() ? 1 : 0;
  if (value.dtype == DType::Int64) return *value.constant.as<int64_t>();
  return std::nullopt;
}

// The user's name of a subgraph's node, or one made of the name of the node around it.
std::string inner_name(const ::onnx::NodeProto& node, int index, const std::string& outer) {
  return node.name().empty() ? fmt::format("{}/{}", outer, node_name(node, index)) : node.name();
}

}  // namespace

bool ModelWalk::add_control(const ::onnx::NodeProto& node, int opset, Scope& scope,
                            const Origin& origin) {
  if (!is_control_flow(node.op_type())) return false;
  ir::Node inputs;
  inputs.op = node.op_type();
  inputs.opset = opset;
  inputs.name = origin.name;
  inputs.inputs = input_ids(node, scope, origin);
  check_kinds_of_inputs(graph_, inputs);
  const Mark before = mark();
  try {
    resolve_control(node, opset, scope, origin);
  } catch (const NeedsValues& reason) {
    const bool batched = node.op_type() == "Scan" && opset < 9;
    if (!makes_calls() || batched) throw;
    roll_back(before);
    add_control_call(node, opset, scope, origin, reason.what());
  }
  return true;
}

void ModelWalk::resolve_control(const ::onnx::NodeProto& node, int opset, Scope& scope,
                                const Origin& origin) {
  if (node.op_type() == "If") {
    add_if(node, scope, origin);
  } else if (node.op_type() == "Loop") {
    add_loop(node, scope, origin);
  } else {
    add_scan(node, opset, scope, origin);
  }
}

std::vector<ir::ValueId> ModelWalk::run_subgraph(const ::onnx::GraphProto& graph,
                                                 const std::vector<ir::ValueId>& inputs,
                                                 const std::vector<std::string>& names,
                                                 const Scope& scope, const Origin& origin) {
  const std::string here =
      fmt::format("{}: node \"{}\": subgraph \"{}\"", path_, origin.name, graph.name());
  if (scope.depth >= kMaxCallDepth) {
    user_error("{}: functions and subgraphs nest more than {} deep", here, kMaxCallDepth);
  }
  if (static_cast<size_t>(graph.input_size()) != inputs.size()) {
    user_error("{}: it has {} inputs, but is given {}", here, graph.input_size(), inputs.size());
  }
  Scope inner;
  inner.parent = &scope;
  inner.opsets = scope.opsets;
  inner.attributes = scope.attributes;
  inner.owner = scope.owner;
  inner.depth = scope.depth + 1;
  inner.in_function = scope.in_function;
  inner.promotes = scope.promotes;
  inner.is_program = scope.is_program;
  inner.prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  Body body{{}, {}, {}, here};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = graph.input(static_cast<int>(i)).name();
    inner.values[name] = inputs[i];
    body.entries.push_back(name);
  }
  for (const auto& tensor : graph.initializer()) {
    // Bodies run several times and hold few tensors: these are copied.
    inner.values[tensor.name()] = ops::add_constant(graph_, value_name(tensor.name(), inner),
                                                    to_tensor(tensor, nullptr, &external_, here));
    body.entries.push_back(tensor.name());
  }
  for (const auto& name : captured_names(graph)) {
    if (find_value(name, scope) != nullptr) body.entries.push_back(name);
  }
  for (int i = 0; i < graph.output_size(); ++i) {
    body.results.push_back(graph.output(i).name());
    if (!names.empty() && !names[static_cast<size_t>(i)].empty()) {
      inner.results.emplace(graph.output(i).name(), names[static_cast<size_t>(i)]);
    }
  }
  for (const auto& node : graph.node()) body.nodes.push_back(&node);
  for (const int index : live_order(body)) {
    const ::onnx::NodeProto& node = graph.node(index);
    add_node(
        node, inner,
        scope.is_program ? Origin{inner_name(node, index, origin.name), origin.source} : origin);
  }
  std::vector<ir::ValueId> results;
  for (const auto& output : graph.output()) {
    results.push_back(*find_value(output.name(), inner));
    const bool absent = results.back() == ir::kAbsent || !output.type().has_tensor_type();
    if (absent) continue;
    check_declared_type(graph_.values[static_cast<size_t>(results.back())], output, "output", here);
  }
  return results;
}

ir::ValueId ModelWalk::emit(const std::string& op, std::vector<ir::ValueId> inputs,
                            ir::Attributes attributes, const Scope& scope, const Origin& origin) {
  ir::Node node = ops::new_node(op, std::move(inputs), std::move(attributes));
  node.name = origin.name;
  node.source = origin.source;
  Scope fresh;
  fresh.prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  node.outputs = {graph_.add_value(value_name(op, fresh))};
  append(std::move(node));
  return graph_.nodes.back().outputs[0];
}

void ModelWalk::bind_outputs(const ::onnx::NodeProto& node, const std::vector<ir::ValueId>& results,
                             Scope& scope, const Origin& origin) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    if (static_cast<size_t>(i) >= results.size()) {
      user_error("{}: its body has {} outputs, not {}", where(node, origin), results.size(),
                 node.output_size());
    }
    const ir::ValueId result = results[static_cast<size_t>(i)];
    if (result == ir::kAbsent) {
      user_error("{}: output \"{}\" is absent", where(node, origin), node.output(i));
    }
    const std::string& name = graph_.values[static_cast<size_t>(result)].name;
    const auto wanted = scope.results.find(node.output(i));
    const bool outer = wanted != scope.results.end() || scope.prefix.empty();
    const std::string target = wanted != scope.results.end() ? wanted->second : node.output(i);
    scope.values[node.output(i)] = outer && name != target ? named(result, target, origin) : result;
  }
}

int64_t ModelWalk::decided(ir::ValueId id, const char* what, const std::string& here) const {
  const ir::Value& value = graph_.values[static_cast<size_t>(id)];
  check_decision(value.dtype, ops::constant_count(value.shape), value.name, what, here);
  const auto known = known_scalar(value);
  if (!known) needs_values("{}: {} is known only at run time", here, what);
  return *known;
}

void ModelWalk::add_if(const ::onnx::NodeProto& node, Scope& scope, const Origin& origin) {
  const ::onnx::AttributeProto* branches[] = {find_attribute(node, "else_branch"),
                                              find_attribute(node, "then_branch")};
  if (node.input_size() != 1 || branches[0] == nullptr || branches[1] == nullptr) {
    user_error("{}: it needs a condition and two branches", where(node, origin));
  }
  check_branches(branches[1]->g(), branches[0]->g(), node, where(node, origin));
  const ir::ValueId condition = input_ids(node, scope, origin)[0];
  if (condition == ir::kAbsent) user_error("{}: it has no condition", where(node, origin));
  const bool taken = decided(condition, "the condition", where(node, origin)) != 0;
  const ::onnx::GraphProto& branch = branches[taken]->g();
  std::vector<std::string> names;
  for (int i = 0; i < branch.output_size(); ++i) {
    const bool asked = i < node.output_size() && !node.output(i).empty();
    names.push_back(asked ? value_name(node.output(i), scope) : "");
  }
  bind_outputs(node, run_subgraph(branch, {}, names, scope, origin), scope, origin);
}

void ModelWalk::add_loop(const ::onnx::NodeProto& node, Scope& scope, const Origin& origin) {
  const ::onnx::AttributeProto* attribute = find_attribute(node, "body");
  if (attribute == nullptr) user_error("{}: it has no body", where(node, origin));
  const ::onnx::GraphProto& body = attribute->g();
  std::vector<ir::ValueId> inputs = input_ids(node, scope, origin);
  inputs.resize(std::max<size_t>(inputs.size(), 2), ir::kAbsent);
  std::vector<ir::ValueId> states(inputs.begin() + 2, inputs.end());
  const auto carried = static_cast<int>(states.size());
  const int scans = body.output_size() - 1 - carried;
  if (scans < 0 || body.input_size() != carried + 2) {
    user_error("{}: its body has {} inputs and {} outputs for {} carried values",
               where(node, origin), body.input_size(), body.output_size(), carried);
  }
  const std::string here = where(node, origin);
  const int64_t trips =
      inputs[0] == ir::kAbsent ? INT64_MAX : decided(inputs[0], "the trip count", here);
  bool going = inputs[1] == ir::kAbsent || decided(inputs[1], "the condition", here) != 0;
  if (going && trips > max_iterations() && trips != INT64_MAX) {
    needs_values("{}: {} iterations are more than a plan repeats", where(node, origin), trips);
  }
  const std::string prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  Scope fresh;
  fresh.prefix = prefix;
  std::vector<std::vector<ir::ValueId>> stacks(static_cast<size_t>(scans));
  Mark start = mark();
  for (int64_t trip = 0; trip < trips && going; ++trip) {
    count_step();
    if (trip == max_iterations()) {
      needs_values("{}: more iterations than a plan repeats", where(node, origin));
    }
    std::vector<ir::ValueId> arguments{
        ops::add_constant(graph_, value_name("iteration", fresh), scalar_of(trip)),
        ops::add_constant(graph_, value_name("condition", fresh), scalar_of_bool(true))};
    arguments.insert(arguments.end(), states.begin(), states.end());
    const std::vector<ir::ValueId> results = run_subgraph(body, arguments, {}, scope, origin);
    going = decided(results[0], "the condition after an iteration", here) != 0;
    std::copy_n(results.begin() + 1, carried, states.begin());
    std::vector<ir::ValueId> parts(results.begin() + 1 + carried, results.end());
    iteration_done(start, parts, states);
    for (size_t s = 0; s < stacks.size(); ++s) stacks[s].push_back(parts[s]);
  }
  std::vector<ir::ValueId> results = states;
  for (int s = 0; s < scans; ++s) {
    const std::vector<ir::ValueId>& parts = stacks[static_cast<size_t>(s)];
    Tensor empty;
    if (parts.empty()) empty = empty_output(body, 1 + carried + s, states, scope, origin);
    results.push_back(stacked(parts, 0, empty, scope, origin));
  }
  bind_outputs(node, results, scope, origin);
}

Tensor ModelWalk::empty_output(const ::onnx::GraphProto& body, int output,
                               const std::vector<ir::ValueId>& states, const Scope& scope,
                               const Origin& origin) {
  Tensor declared = empty_stack(body.output(output));
  if (declared.defined()) return declared;
  Scope fresh;
  fresh.prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  const Mark before = mark();
  ValueType type;
  try {
    std::vector<ir::ValueId> arguments{
        ops::add_constant(graph_, value_name("iteration", fresh), scalar_of(0)),
        ops::add_constant(graph_, value_name("condition", fresh), scalar_of_bool(true))};
    arguments.insert(arguments.end(), states.begin(), states.end());
    const ir::ValueId id =
        run_subgraph(body, arguments, {}, scope, origin)[static_cast<size_t>(output)];
    const ir::Value& value = graph_.values[static_cast<size_t>(id)];
    type = type_of_value(value);
  } catch (...) {
    roll_back(before);
    throw;
  }
  roll_back(before);
  type.shape.insert(type.shape.begin(), graph_.pool->integer(0));
  return stack_without(type, 0);
}

ir::ValueId ModelWalk::stacked(const std::vector<ir::ValueId>& parts, int axis, const Tensor& empty,
                               const Scope& scope, const Origin& origin) {
  Scope fresh;
  fresh.prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  if (parts.empty()) {
    if (!empty.defined()) {
      user_error("{}: node \"{}\": the type of its output without iterations is open", path_,
                 origin.name);
    }
    return ops::add_constant(graph_, value_name("stack", fresh), empty);
  }
  Tensor axes(DType::Int64, {1});
  *axes.as<int64_t>() = axis;
  const ir::ValueId axes_id = ops::add_constant(graph_, value_name("axes", fresh), axes);
  std::vector<ir::ValueId> rows;
  for (const ir::ValueId part : parts)
    rows.push_back(emit("Unsqueeze", {part, axes_id}, {}, scope, origin));
  // An element of a Concat nests one select per part, so many parts are joined in rounds.
  const ir::Attributes along{{"axis", static_cast<int64_t>(axis)}};
  while (rows.size() > 1) {
    std::vector<ir::ValueId> joined;
    for (size_t first = 0; first < rows.size(); first += kMaxUnrolled) {
      const size_t count = std::min<size_t>(kMaxUnrolled, rows.size() - first);
      const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(first);
      const std::vector<ir::ValueId> group(begin, begin + static_cast<std::ptrdiff_t>(count));
      joined.push_back(count == 1 ? group[0] : emit("Concat", group, along, scope, origin));
    }
    rows = std::move(joined);
  }
  return rows[0];
}

std::vector<ir::ValueId> ModelWalk::scanned(const ::onnx::NodeProto& node,
                                            std::vector<ir::ValueId> states,
                                            const std::vector<ir::ValueId>& inputs, int axis_shift,
                                            Scope& scope, const Origin& origin) {
  const ::onnx::GraphProto& body = find_attribute(node, "body")->g();
  const std::string here = where(node, origin);
  const size_t carried = states.size();
  if (static_cast<size_t>(body.output_size()) < carried ||
      static_cast<size_t>(body.input_size()) != carried + inputs.size()) {
    user_error("{}: its body has {} inputs and {} outputs for {} states and {} scanned values",
               here, body.input_size(), body.output_size(), carried, inputs.size());
  }
  const size_t outputs = static_cast<size_t>(body.output_size()) - carried;
  const auto input_axes = integers_for_each(node, "scan_input_axes", inputs.size(), here);
  const auto backwards = directions_for_each(
      node, axis_shift == 0 ? "scan_input_directions" : "directions", inputs.size(), here);
  const auto output_axes = integers_for_each(node, "scan_output_axes", outputs, here);
  const auto output_backwards = directions_for_each(node, "scan_output_directions", outputs, here);
  int64_t length = -1;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& value = graph_.values[static_cast<size_t>(inputs[i])];
    const auto rank = static_cast<int64_t>(value.shape.size());
    int64_t axis = input_axes[i];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) user_error("{}: scan axis of input {} is out of range", here, i);
    axes.push_back(axis);
  }
  const auto forwards = [](const auto& all) {
    return std::count(all.begin(), all.end(), 0) == std::ssize(all);
  };
  if (makes_calls() && forwards(backwards) && forwards(output_backwards)) {
    std::vector<ir::ValueId> results =
        mapped(node, states, inputs, axes, output_axes, scope, origin);
    if (!results.empty()) return results;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ir::Value& value = graph_.values[static_cast<size_t>(inputs[i])];
    const int64_t axis = axes[i];
    const ir::Expr size = value.shape[static_cast<size_t>(axis)];
    if (!size->is_constant()) needs_values("{}: its length is known only at run time", here);
    if (length >= 0 && size->integer != length) {
      user_error("{}: its inputs are of lengths {} and {}", here, length, size->integer);
    }
    length = size->integer;
  }
  if (length > max_iterations()) {
    needs_values("{}: {} iterations are more than a plan repeats", here, length);
  }
  Scope fresh;
  fresh.prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  std::vector<std::vector<ir::ValueId>> stacks(outputs);
  Mark start = mark();
  for (int64_t step = 0; step < length; ++step) {
    count_step();
    std::vector<ir::ValueId> arguments = states;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t at = backwards[i] != 0 ? length - 1 - step : step;
      const ir::ValueId index =
          ops::add_constant(graph_, value_name("index", fresh), scalar_of(at));
      arguments.push_back(emit("Gather", {inputs[i], index}, {{"axis", axes[i]}}, scope, origin));
    }
    const std::vector<ir::ValueId> results = run_subgraph(body, arguments, {}, scope, origin);
    std::copy_n(results.begin(), carried, states.begin());
    std::vector<ir::ValueId> parts(results.begin() + static_cast<std::ptrdiff_t>(carried),
                                   results.end());
    iteration_done(start, parts, states);
    for (size_t o = 0; o < outputs; ++o) stacks[o].push_back(parts[o]);
  }
  for (size_t o = 0; o < outputs; ++o) {
    if (output_backwards[o] != 0) std::reverse(stacks[o].begin(), stacks[o].end());
    int64_t axis = output_axes[o];
    if (axis < 0 && !stacks[o].empty()) {
      axis +=
          1 + static_cast<int64_t>(graph_.values[static_cast<size_t>(stacks[o][0])].shape.size());
    }
    if (axis < 0) user_error("{}: scan axis of output {} is out of range", here, o);
    states.push_back(stacked(stacks[o], static_cast<int>(axis),
                             empty_stack(body.output(static_cast<int>(carried + o))), scope,
                             origin));
  }
  return states;
}

// Scan of opset 8 has a batch; every element of it is a separate scan.
void ModelWalk::add_scan(const ::onnx::NodeProto& node, int opset, Scope& scope,
                         const Origin& origin) {
  const ::onnx::AttributeProto* body = find_attribute(node, "body");
  const ::onnx::AttributeProto* count = find_attribute(node, "num_scan_inputs");
  std::vector<ir::ValueId> inputs = input_ids(node, scope, origin);
  const std::string here = where(node, origin);
  if (body == nullptr || count == nullptr || count->i() < 1) {
    user_error("{}: it needs a body and num_scan_inputs", here);
  }
  const bool batched = opset < 9;
  if (batched && !inputs.empty()) {
    if (inputs[0] != ir::kAbsent) user_error("{}: sequence_lens is not supported", here);
    inputs.erase(inputs.begin());
  }
  if (count->i() > static_cast<int64_t>(inputs.size()) ||
      std::count(inputs.begin(), inputs.end(), ir::kAbsent) != 0) {
    user_error("{}: {} inputs for {} scan inputs", here, inputs.size(), count->i());
  }
  const std::vector<ir::ValueId> states(inputs.begin(), inputs.end() - count->i());
  const std::vector<ir::ValueId> scans(inputs.end() - count->i(), inputs.end());
  if (!batched) {
    return bind_outputs(node, scanned(node, states, scans, 0, scope, origin), scope, origin);
  }
  const auto& shape = graph_.values[static_cast<size_t>(scans[0])].shape;
  if (shape.empty() || !shape[0]->is_constant()) {
    needs_values("{}: its batch is known only at run time", here);
  }
  const int64_t batch = shape[0]->integer;
  if (batch > max_iterations()) {
    needs_values("{}: a batch of {} is more than a plan repeats", here, batch);
  }
  Scope fresh;
  fresh.prefix = (scope.prefix.empty() ? origin.name : scope.prefix) + "/";
  std::vector<std::vector<ir::ValueId>> rows;
  for (int64_t b = 0; b < batch; ++b) {
    count_step();
    const ir::ValueId index = ops::add_constant(graph_, value_name("batch", fresh), scalar_of(b));
    const auto element = [&](std::vector<ir::ValueId> values) {
      for (ir::ValueId& id : values) {
        id = emit("Gather", {id, index}, {{"axis", int64_t{0}}}, scope, origin);
      }
      return values;
    };
    const auto results = scanned(node, element(states), element(scans), 1, scope, origin);
    rows.resize(results.size());
    for (size_t r = 0; r < results.size(); ++r) rows[r].push_back(results[r]);
  }
  std::vector<ir::ValueId> results;
  for (size_t r = 0; r < rows.size(); ++r) {
    results.push_back(
        stacked(rows[r], 0, empty_stack(body->g().output(static_cast<int>(r))), scope, origin));
  }
  bind_outputs(node, results, scope, origin);
}

}  // namespace redfuser::onnx
