// Adding nodes and constants to a graph, for passes and the importer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace redfuser::ops {

// The oldest opset in which axes and bounds are inputs, as in the nodes that passes add.
inline constexpr int kNodeOpset = 13;

// A node of ai.onnx by its definition in `opset`, without outputs and name.
ir::Node new_node(const std::string& op, std::vector<ir::ValueId> inputs,
                  ir::Attributes attributes = {}, int opset = kNodeOpset);
// The same to replace `origin`, with that node's name and source, of its opset or a newer one.
ir::Node new_node_for(const ir::Node& origin, const std::string& op,
                      std::vector<ir::ValueId> inputs);

// Appends the node and makes it the producer of its outputs, which exist already. No inference.
ir::NodeId append_node(ir::Graph& graph, ir::Node node);
// Appends the node with one new output of this name, infers it, and returns the output.
ir::ValueId add_node(ir::Graph& graph, ir::Node node, std::string output);
// A new value that holds the tensor.
ir::ValueId add_constant(ir::Graph& graph, std::string name, Tensor tensor);

// Adds nodes for a pass that refers to nodes by number: new nodes are appended, so that numbers
// stay valid, until place() sorts them in.
class GraphEditor {
 public:
  explicit GraphEditor(ir::Graph& graph)
      : graph_(graph), old_nodes_(static_cast<ir::NodeId>(graph.nodes.size())) {}

  // add_node with a place right before node `before`, after nodes added there earlier.
  ir::ValueId add(ir::NodeId before, ir::Node node, std::string output);
  bool empty() const { return before_.empty(); }
  // Moves the new nodes to their places. Numbers of nodes change.
  void place();

 private:
  ir::Graph& graph_;
  const ir::NodeId old_nodes_;
  std::map<ir::NodeId, std::vector<ir::NodeId>> before_;  // new nodes by the old one after them
};

// Writes the nodes that replace a node. They stand right before it, and have its name, its source,
// and its opset or a newer one. New values are named after its first output and `kind`.
class Replacement {
 public:
  Replacement(ir::Graph& graph, GraphEditor& editor, ir::NodeId origin, std::string kind);

  ir::ValueId add(const std::string& op, std::vector<ir::ValueId> inputs,
                  ir::Attributes attributes = {});
  // Constants of int64: of any sizes, and of one axis.
  ir::ValueId integers(Dims dims, const std::vector<int64_t>& numbers);
  ir::ValueId list(const std::vector<int64_t>& numbers);

 private:
  std::string unique() const;

  ir::Graph& graph_;
  GraphEditor& editor_;
  const ir::NodeId at_;
  const ir::Node origin_;  // nodes move while others are added
  const std::string kind_;
};

}  // namespace redfuser::ops
