#include "onnx/export/function_nodes.h"

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

namespace redfuser::onnx {

FunctionNodes::FunctionNodes(const ::onnx::ModelProto& model) : opsets_(opsets_of(model)) {
  for (const auto& function : model.functions()) {
    local_.emplace(normal_domain(function.domain()), function.name());
  }
}

bool FunctionNodes::may_have(const ::onnx::NodeProto& node) const {
  if (std::any_of(node.attribute().begin(), node.attribute().end(),
                  [](const auto& a) { return a.has_g() || a.graphs_size() != 0; })) {
    return false;
  }
  const std::string domain = normal_domain(node.domain());
  if (local_.count({domain, node.op_type()})) return true;
  const auto opset = opsets_.find(domain);
  if (opset == opsets_.end()) return false;
  const int version = opset->second;
  return ::onnx::OpSchemaRegistry::Schema(node.op_type(), version, domain) != nullptr;
}

}  // namespace redfuser::onnx
