#include "onnx/support/node_sets.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/error.h"
#include "base/type_codes.h"
#include "onnx/check/node_order.h"
#include "onnx/proto/value_types.h"

namespace redfuser::onnx {
namespace {

class NodeSets {
 public:
  NodeSets(const ::onnx::GraphProto& graph, const std::string& where,
           std::vector<std::string>& reasons)
      : graph_(graph),
        order_(order_of_all(graph, where)),
        types_(declarations_of(graph)),
        reasons_(reasons),
        levels_(reasons.size()) {
    for (const auto& tensor : graph.initializer()) initializers_.insert(tensor.name());
    for (const auto& output : graph.output()) outputs_.insert(output.name());
    for (const int node : order_) {
      for (const std::string& output : graph.node(node).output()) {
        if (!output.empty()) producers_[output] = node;
      }
    }
  }

  std::vector<std::vector<int>> find() {
    do {
      set_levels();
    } while (refuse_at_borders());
    std::map<int, std::vector<int>> sets;
    for (const int node : order_) {
      if (runs(node)) sets[levels_[static_cast<size_t>(node)]].push_back(node);
    }
    std::vector<std::vector<int>> result;
    for (auto& [level, nodes] : sets) result.push_back(std::move(nodes));
    return result;
  }

 private:
  bool runs(int node) const { return reasons_[static_cast<size_t>(node)].empty(); }

  template <typename Visit>
  void for_each_read(int node, const Visit& visit) const {
    for_each_input(graph_.node(node), [&](const std::string& name, bool) {
      if (!name.empty() && initializers_.count(name) == 0) visit(name);
    });
  }

  // A set has the nodes of a level. Levels never fall along a path, and rise behind a node that is
  // in no set, so a path that leaves a level does not come back to it.
  void set_levels() {
    for (const int node : order_) {
      int level = 0;
      for_each_read(node, [&](const std::string& name) {
        const auto producer = producers_.find(name);
        if (producer == producers_.end()) return;
        const int before = levels_[static_cast<size_t>(producer->second)];
        level = std::max(level, before + (runs(node) && !runs(producer->second) ? 1 : 0));
      });
      levels_[static_cast<size_t>(node)] = level;
    }
  }

  bool same_set(const std::string& value, int node) const {
    const auto producer = producers_.find(value);
    return producer != producers_.end() && runs(producer->second) && runs(node) &&
           levels_[static_cast<size_t>(producer->second)] == levels_[static_cast<size_t>(node)];
  }

  bool refuse_at_borders() {
    bool refused = false;
    std::unordered_set<std::string> leaving = outputs_;
    for (const int node : order_) {
      for_each_read(node, [&](const std::string& name) {
        if (same_set(name, node)) return;
        leaving.insert(name);
        refused |= refuse(node, name, true);
      });
    }
    for (const int node : order_) {
      for (const std::string& name : graph_.node(node).output()) {
        if (leaving.count(name) > 0) refused |= refuse(node, name, false);
      }
    }
    return refused;
  }

  // True where the node gets a reason now.
  bool refuse(int node, const std::string& value, bool enters) {
    if (!runs(node)) return false;
    const std::string problem = problem_of(value, enters);
    if (problem.empty()) return false;
    reasons_[static_cast<size_t>(node)] = fmt::format("\"{}\" {}, so it cannot {} a set of nodes",
                                                      value, problem, enters ? "enter" : "leave");
    return true;
  }

  std::string problem_of(const std::string& value, bool enters) const {
    const auto found = types_.find(value);
    if (found == types_.end()) return "has no declared type";
    const ::onnx::TypeProto& type = found->second->type();
    if (!type.has_tensor_type()) return "is not a tensor";
    const DType dtype = dtype_of(type.tensor_type().elem_type());
    if (bits_of(dtype) < 8) return fmt::format("is {}", type_name(type.tensor_type().elem_type()));
    if (enters && !type.tensor_type().has_shape()) return "has no declared rank";
    return "";
  }

  const ::onnx::GraphProto& graph_;
  const std::vector<int> order_;
  const ValueDeclarations types_;
  std::vector<std::string>& reasons_;
  std::vector<int> levels_;
  std::unordered_set<std::string> initializers_, outputs_;
  std::unordered_map<std::string, int> producers_;
};

}  // namespace

std::vector<std::vector<int>> node_sets(const ::onnx::GraphProto& graph, const std::string& where,
                                        std::vector<std::string>& reasons) {
  return NodeSets(graph, where, reasons).find();
}

}  // namespace redfuser::onnx
