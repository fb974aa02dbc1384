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

// A list of nodes with the names that enter it and those asked of it.
struct Body {
  std::vector<const ::onnx::NodeProto*> nodes;
  std::vector<std::string> entries;  // inputs and initializers
  std::vector<std::string> results;
  std::string where;  // how errors start: the file, the function
};

// Indices of the nodes that the results need, in topological order; the file's order is kept where
// it is one. Throws UserError for a name produced twice, an input or a result that nothing
// produces, and a cycle, whose nodes it names.
std::vector<int> live_order(const Body& body);

// The names that a node reads; those that its subgraphs take from around them are `captured`.
void for_each_input(const ::onnx::NodeProto& node,
                    const std::function<void(const std::string&, bool captured)>& visit);
// The names that a subgraph takes from around it, each once: those that it does not define itself.
std::vector<std::string> captured_names(const ::onnx::GraphProto& graph);

}  // namespace redfuser::onnx
