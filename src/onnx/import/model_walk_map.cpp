// Scans whose iterations do not depend on one another: the body's nodes over the whole axis.
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "onnx/import/batching.h"
#include "onnx/import/model_walk.h"
#include "ops/graph_editor.h"
#include "ops/lowering.h"
#include "ops/op_def.h"

namespace redfuser::onnx {
namespace {

const ir::Value& value_of(const ir::Graph& graph, ir::ValueId id) {
  return graph.values[static_cast<size_t>(id)];
}

// Whether the body returns the carried value that it is given.
bool is_unchanged(const ir::Graph& body, ir::ValueId state, ir::ValueId result) {
  if (state == result) return true;
  const ir::Value& before = value_of(body, state);
  const ir::Value& after = value_of(body, result);
  if (before.dtype != after.dtype || before.shape != after.shape) return false;
  if (size_of(before.dtype) == 0) return false;
  ops::Lowering lowering(body, [&](ir::ValueId id) { return id >= result || id != state; });
  const std::vector<ir::Expr> index = ops::shared_axes(body, state);
  return lowering.element(state, index) == lowering.element(result, index);
}

}  // namespace

ir::ValueId ModelWalk::moved_axis(ir::ValueId value, int64_t from, int64_t to, const Scope& scope,
                                  const Origin& origin) {
  if (from == to) return value;
  std::vector<int64_t> perm(value_of(graph_, value).shape.size());
  for (size_t k = 0; k < perm.size(); ++k) perm[k] = static_cast<int64_t>(k);
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return emit("Transpose", {value}, {{"perm", std::move(perm)}}, scope, origin);
}

std::vector<ir::ValueId> ModelWalk::mapped(const ::onnx::NodeProto& node,
                                           const std::vector<ir::ValueId>& states,
                                           const std::vector<ir::ValueId>& inputs,
                                           const std::vector<int64_t>& axes,
                                           const std::vector<int64_t>& output_axes,
                                           const Scope& scope, const Origin& origin) {
  const Mark before = mark();
  std::vector<ir::ValueId> arguments = states, slices, results;
  ir::Expr count = nullptr;
  bool maps = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<ir::Expr> shape = value_of(graph_, inputs[i]).shape;
    const ir::Expr size = shape[static_cast<size_t>(axes[i])];
    maps = maps && (count == nullptr || count == size);
    count = size;
    shape.erase(shape.begin() + axes[i]);
    slices.push_back(graph_.add_value(name_for(scope.prefix + origin.name + "/slice"),
                                      value_of(graph_, inputs[i]).dtype));
    graph_.values.back().shape = std::move(shape);
  }
  if (maps) {
    arguments.insert(arguments.end(), slices.begin(), slices.end());
    try {
      results = run_subgraph(find_attribute(node, "body")->g(), arguments, {}, scope, origin);
    } catch (const UserError&) {  // said again by the iterations, if there are any
      maps = false;
    }
    maps = maps && calls_.size() == before.calls;
  }
  for (size_t s = 0; maps && s < states.size(); ++s) {
    maps = is_unchanged(graph_, states[s], results[s]);
  }
  const ir::Graph body = maps ? graph_ : ir::Graph();
  roll_back(before);
  if (!maps) return {};
  results.erase(results.begin(), results.begin() + std::ssize(states));
  std::vector<ir::ValueId> whole;
  for (size_t i = 0; i < inputs.size(); ++i) {
    whole.push_back(moved_axis(inputs[i], axes[i], 0, scope, origin));
  }
  const std::vector<ir::ValueId> stacks = mapped_body(body, before, results, slices, whole, count);
  if (stacks.size() != results.size()) {
    roll_back(before);
    return {};
  }
  results = states;
  for (size_t o = 0; o < stacks.size(); ++o) {
    const auto rank = std::ssize(value_of(graph_, stacks[o]).shape);
    const int64_t axis = output_axes[o] < 0 ? output_axes[o] + rank : output_axes[o];
    if (axis < 0 || axis >= rank) {
      user_error("{}: scan axis of output {} is out of range", where(node, origin), o);
    }
    results.push_back(moved_axis(stacks[o], 0, axis, scope, origin));
  }
  return results;
}

std::vector<ir::ValueId> ModelWalk::mapped_body(const ir::Graph& body, const Mark& before,
                                                const std::vector<ir::ValueId>& results,
                                                const std::vector<ir::ValueId>& slices,
                                                const std::vector<ir::ValueId>& whole,
                                                ir::Expr count) {
  Batching batching(body, graph_, count,
                    [&](const std::string& wanted) { return name_for(wanted); });
  for (size_t id = before.values; id < body.values.size(); ++id) {
    const ir::Value& value = body.values[id];
    if (!value.is_constant()) continue;
    batching.set(static_cast<ir::ValueId>(id),
                 ops::add_constant(graph_, value.name, value.constant), false);
  }
  for (size_t i = 0; i < slices.size(); ++i) batching.set(slices[i], whole[i], true);
  for (size_t n = before.nodes; n < body.nodes.size(); ++n) {
    const ir::Node& node = body.nodes[n];
    const bool known = std::all_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId id) {
      return id == ir::kAbsent || value_of(body, id).is_constant();
    });
    if (!known && !batching.add(node)) return {};
  }
  std::vector<ir::ValueId> stacks;
  for (const ir::ValueId id : results) {
    if (!batching.is_batched(id)) return {};
    stacks.push_back(batching.value(id));
  }
  return stacks;
}

}  // namespace redfuser::onnx
