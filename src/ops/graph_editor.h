// Adding to a graph: the one way in which passes and the importer make nodes and constants.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace redfuser::ops {

// The oldest opset with the forms that our own nodes have: axes and bounds are inputs.
inline constexpr int kNodeOpset = 13;

// A node of ai.onnx, of the definition that serves `opset`; its outputs and name are still open.
ir::Node new_node(const std::string& op, std::vector<ir::ValueId> inputs,
                  ir::Attributes attributes = {}, int opset = kNodeOpset);
// The same in the place of `origin`: it has that node's name and source, and is no older.
ir::Node new_node_for(const ir::Node& origin, const std::string& op,
                      std::vector<ir::ValueId> inputs);

// Appends the node and makes it the producer of its outputs, which are there; infers nothing.
ir::NodeId append_node(ir::Graph& graph, ir::Node node);
// Appends the node with one new output of this name, infers it, and returns the output.
ir::ValueId add_node(ir::Graph& graph, ir::Node node, std::string output);
// A new value that holds the tensor.
ir::ValueId add_constant(ir::Graph& graph, std::string name, Tensor tensor);

// Nodes added by a pass that knows the graph's nodes by number: they stand after all others, so
// that numbers stay, until they are placed.
class GraphEditor {
 public:
  explicit GraphEditor(ir::Graph& graph)
      : graph_(graph), old_nodes_(static_cast<ir::NodeId>(graph.nodes.size())) {}

  // add_node, with a place right before node `before` and after those added for it earlier.
  ir::ValueId add(ir::NodeId before, ir::Node node, std::string output);
  bool empty() const { return before_.empty(); }
  // Moves the new nodes to their places. Numbers of nodes change.
  void place();

 private:
  ir::Graph& graph_;
  const ir::NodeId old_nodes_;
  std::map<ir::NodeId, std::vector<ir::NodeId>> before_;  // new nodes by the old one after them
};

}  // namespace redfuser::ops
