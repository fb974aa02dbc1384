// The order in which a body's nodes run: the main graph or a function.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace redfuser::onnx {

// The user's name of a node, or `MatMul_17` for one without: its operator and index.
std::string node_name(const ::onnx::NodeProto& node, int index);
// `[MatMul] node "name"`, as errors start.
std::string node_text(const ::onnx::NodeProto& node, int index);

// A list of nodes with the names of its inputs and of its results.
struct Body {
  std::vector<const ::onnx::NodeProto*> nodes;
  std::vector<std::string> entries;  // inputs and initializers
  std::vector<std::string> results;
  std::string where;  // how errors start: the file, the function
};

// Indices of the nodes that the results need, in topological order, which is the file's order if
// that is topological. Throws UserError for a name that is produced twice, for an input or a result
// that is not produced, and for a cycle, with its nodes.
std::vector<int> live_order(const Body& body);

// All nodes of a graph in topological order, those that no output needs included. Throws UserError
// as live_order does.
std::vector<int> order_of_all(const ::onnx::GraphProto& graph, const std::string& where);

// The names that a node reads; outer names that its subgraphs use are `captured`.
void for_each_input(const ::onnx::NodeProto& node,
                    const std::function<void(const std::string&, bool captured)>& visit);
// The outer names that a subgraph uses, each once.
std::vector<std::string> captured_names(const ::onnx::GraphProto& graph);

}  // namespace redfuser::onnx
