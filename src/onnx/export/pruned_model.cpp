#include "onnx/export/pruned_model.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "onnx/check/node_order.h"

namespace redfuser::onnx {
namespace {

using Constants = std::unordered_map<std::string, const Tensor*>;

Constants small_constants(const ir::Graph& graph) {
  Constants constants;
  for (const ir::Value& value : graph.values) {
    if (value.is_constant() && value.constant.size() <= kMaxFolded) {
      constants.emplace(value.name, &value.constant);
    }
  }
  return constants;
}

bool is_constant(const ::onnx::NodeProto& node, const Constants& constants,
                 const std::unordered_set<std::string>& outputs) {
  if (node.op_type() == "Constant") return false;
  return std::all_of(node.output().begin(), node.output().end(), [&](const std::string& name) {
    return name.empty() || (constants.count(name) && !outputs.count(name));
  });
}

// Floats made of integers, and constants made of them. Other programs find integer operators by the
// node that dequantises, so that it stays, and what reads it.
class Dequantised {
 public:
  // True, and remembers the outputs, for a node that makes such floats; of others than the one that
  // dequantises only where they are constants.
  bool add(const ::onnx::NodeProto& node, const Constants& constants) {
    const auto is_constant_float = [&](const std::string& name) {
      const auto value = constants.find(name);
      return value != constants.end() && is_float(value->second->dtype());
    };
    const bool reads = std::any_of(node.input().begin(), node.input().end(),
                                   [&](const auto& name) { return names_.count(name) != 0; });
    const bool makes = std::any_of(node.output().begin(), node.output().end(), is_constant_float);
    if (node.op_type() != "DequantizeLinear" && !(reads && makes)) return false;
    names_.insert(node.output().begin(), node.output().end());
    return true;
  }

 private:
  std::unordered_set<std::string> names_;
};

}  // namespace

PrunedModel prune(const LoadedModel& model, const ir::Graph& graph) {
  const ::onnx::GraphProto& main = model.proto->graph();
  const Constants constants = small_constants(graph);
  std::unordered_set<std::string> outputs;
  Body body{{}, {}, {}, model.path};
  for (const auto& output : main.output()) {
    outputs.insert(output.name());
    body.results.push_back(output.name());
  }
  std::set<std::string> entries;
  for (const auto& tensor : main.initializer()) entries.insert(tensor.name());
  for (const auto& input : main.input()) entries.insert(input.name());
  body.entries.assign(entries.begin(), entries.end());

  std::vector<int> kept;
  std::unordered_map<std::string, const Tensor*> folded;
  Dequantised dequantised;
  for (int n = 0; n < main.node_size(); ++n) {
    const ::onnx::NodeProto& node = main.node(n);
    if (dequantised.add(node, constants) || !is_constant(node, constants, outputs)) {
      kept.push_back(n);
      body.nodes.push_back(&node);
      continue;
    }
    for (const auto& name : node.output()) {
      if (name.empty()) continue;
      folded.emplace(name, constants.at(name));
      body.entries.push_back(name);
    }
  }
  PrunedModel pruned;
  for (const int index : live_order(body)) {
    pruned.nodes.push_back(kept[static_cast<size_t>(index)]);
    for_each_input(*body.nodes[static_cast<size_t>(index)], [&](const std::string& name, bool) {
      const auto value = folded.find(name);
      if (value != folded.end()) pruned.folded.emplace(name, *value->second);
    });
  }
  return pruned;
}

}  // namespace redfuser::onnx
