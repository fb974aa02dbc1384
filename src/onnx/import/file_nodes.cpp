#include "onnx/import/file_nodes.h"

#include <onnx/onnx_pb.h>

#include "onnx/check/node_order.h"

namespace redfuser::onnx {

std::vector<FileNode> file_nodes(const LoadedModel& model) {
  std::vector<FileNode> nodes;
  const ::onnx::GraphProto& graph = model.proto->graph();
  for (int i = 0; i < graph.node_size(); ++i) {
    const ::onnx::NodeProto& proto = graph.node(i);
    FileNode node;
    node.op = proto.domain().empty() ? proto.op_type() : proto.domain() + "." + proto.op_type();
    node.name = node_name(proto, i);
    for (const std::string& input : proto.input()) {
      if (!input.empty()) node.inputs.push_back(input);
    }
    for (const std::string& output : proto.output()) {
      if (!output.empty()) node.outputs.push_back(output);
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

}  // namespace redfuser::onnx
