// If, Loop and Scan that only a run resolves: one node of the graph, whose bodies are programs of
// their own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "onnx/functions/functions.h"

namespace onnx {
class GraphProto;
class NodeProto;
}  // namespace onnx

namespace redfuser::onnx {

// A subgraph, and what is in force where its node stands. Immutable.
struct Subgraph {
  std::shared_ptr<const ::onnx::NodeProto> node;  // owns `graph`; without attribute references
  const ::onnx::GraphProto* graph = nullptr;
  // The inputs of its program: those of the subgraph, then the outer values that it uses.
  std::vector<std::string> formals, captured;
  std::vector<std::string> absent;  // outer names of optional values that are not there
  Opsets opsets;
  bool promotes = false;  // BodyTypes::promotes
  int depth = 0;
  std::string prefix, node_name;  // of new values; of the user's node
  int source = -1;                // the user's node, as ir::Node::source
};

// One node. Its inputs are the operator's own, then the values that its bodies use.
struct ControlCall {
  enum class Kind { If, Loop, Scan };
  Kind kind = Kind::If;
  std::string where;                          // `[Loop] node "name"`, as errors start
  std::string reason;                         // why only a run resolves it
  std::vector<Subgraph> bodies;               // of an If: else_branch, then_branch
  size_t own_inputs = 0;                      // of the operator; absent ones are kAbsent
  std::vector<std::vector<size_t>> captured;  // by body: inputs of the node that it uses
  size_t states = 0;                          // values that Loop and Scan carry
  // Of Scan, by scan input and scan output; axes may be negative. 1: backwards.
  std::vector<int64_t> input_axes, input_backwards, output_axes, output_backwards;
  // By scan output: its value without an iteration; undefined where the file leaves its type open.
  std::vector<Tensor> without_iterations;
};

// The number in LoadedModel::calls of a node that stands for a call; -1 for other nodes.
int64_t call_number(const ir::Node& node);

// A node that stands for call `number`, without inputs, outputs and name.
ir::Node call_node(const ::onnx::NodeProto& node, int opset, int64_t number);

}  // namespace redfuser::onnx
