#include "ops/graph_editor.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/infer.h"
#include "ops/op_def.h"
#include "ops/registry.h"

namespace redfuser::ops {

ir::Node new_node(const std::string& op, std::vector<ir::ValueId> inputs, ir::Attributes attributes,
                  int opset) {
  ir::Node node;
  node.op = op;
  node.opset = opset;
  node.def = find_op("", op, opset);
  RF_CHECK(node.def != nullptr, "{} has no definition in opset {}", op, opset);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  return node;
}

ir::Node new_node_for(const ir::Node& origin, const std::string& op,
                      std::vector<ir::ValueId> inputs) {
  const int opset = std::max(origin.domain.empty() ? origin.opset : 0, kNodeOpset);
  ir::Node node = new_node(op, std::move(inputs), {}, opset);
  node.name = origin.name;
  node.source = origin.source;
  return node;
}

ir::NodeId append_node(ir::Graph& graph, ir::Node node) {
  const auto id = static_cast<ir::NodeId>(graph.nodes.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == ir::kAbsent) continue;
    ir::Value& value = graph.values[static_cast<size_t>(node.outputs[i])];
    value.producer = id;
    value.output_index = static_cast<int>(i);
  }
  graph.nodes.push_back(std::move(node));
  return id;
}

ir::ValueId add_node(ir::Graph& graph, ir::Node node, std::string output) {
  const ir::ValueId result = graph.add_value(std::move(output));
  node.outputs = {result};
  infer_node(graph, append_node(graph, std::move(node)));
  return result;
}

ir::ValueId add_constant(ir::Graph& graph, std::string name, Tensor tensor) {
  const ir::ValueId id = graph.add_value(std::move(name), tensor.dtype());
  set_constant(graph, id, std::move(tensor));
  return id;
}

ir::ValueId GraphEditor::add(ir::NodeId before, ir::Node node, std::string output) {
  before_[before].push_back(static_cast<ir::NodeId>(graph_.nodes.size()));
  return add_node(graph_, std::move(node), std::move(output));
}

void GraphEditor::place() {
  std::vector<ir::Node> old = std::move(graph_.nodes);
  graph_.nodes.clear();
  graph_.nodes.reserve(old.size());
  for (ir::NodeId n = 0; n <= old_nodes_; ++n) {
    if (const auto added = before_.find(n); added != before_.end()) {
      for (const ir::NodeId id : added->second) {
        append_node(graph_, std::move(old[static_cast<size_t>(id)]));
      }
    }
    if (n < old_nodes_) append_node(graph_, std::move(old[static_cast<size_t>(n)]));
  }
  before_.clear();
}

Replacement::Replacement(ir::Graph& graph, GraphEditor& editor, ir::NodeId origin, std::string kind)
    : graph_(graph),
      editor_(editor),
      at_(origin),
      origin_(graph.nodes[static_cast<size_t>(origin)]),
      kind_(std::move(kind)) {}

ir::ValueId Replacement::add(const std::string& op, std::vector<ir::ValueId> inputs,
                             ir::Attributes attributes) {
  ir::Node node = new_node_for(origin_, op, std::move(inputs));
  node.attributes = std::move(attributes);
  return editor_.add(at_, std::move(node), unique());
}

ir::ValueId Replacement::integers(Dims dims, const std::vector<int64_t>& numbers) {
  Tensor tensor(DType::Int64, std::move(dims));
  std::copy(numbers.begin(), numbers.end(), tensor.as<int64_t>());
  return add_constant(graph_, unique(), std::move(tensor));
}

ir::ValueId Replacement::list(const std::vector<int64_t>& numbers) {
  return integers({static_cast<int64_t>(numbers.size())}, numbers);
}

std::string Replacement::unique() const {
  const ir::Value& output = graph_.values[static_cast<size_t>(origin_.outputs[0])];
  return fmt::format("{}.{}#{}", output.name, kind_, graph_.values.size());
}

}  // namespace redfuser::ops
