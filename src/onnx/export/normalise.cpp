#include "onnx/export/normalise.h"

#include <onnx/onnx_pb.h>

#include "onnx/functions/functions.h"
#include "onnx/proto/external_data.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

// Embeds tensors of attributes that are external data of the original file; they are few and small.
void embed_external(::onnx::NodeProto& node, ExternalData& external, const std::string& where) {
  for (auto& attribute : *node.mutable_attribute()) {
    if (!attribute.has_t() || attribute.t().data_location() != ::onnx::TensorProto::EXTERNAL)
      continue;
    const Tensor tensor = to_tensor(attribute.t(), nullptr, &external, where);
    *attribute.mutable_t() = to_proto(attribute.t().name(), tensor);
  }
}

// Normalises domains and embeds external tensors of attributes.
void normalise_nodes(google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes,
                     ExternalData& external, const std::string& where) {
  for (auto& node : nodes) {
    node.set_domain(normal_domain(node.domain()));
    embed_external(node, external, where);
  }
}

}  // namespace

void normalise(::onnx::ModelProto& proto, const std::string& path) {
  ExternalData external(path);
  normalise_nodes(*proto.mutable_graph()->mutable_node(), external, path);
  for (auto& import : *proto.mutable_opset_import()) {
    import.set_domain(normal_domain(import.domain()));
  }
  for (auto& function : *proto.mutable_functions()) {
    normalise_nodes(*function.mutable_node(), external, path);
    for (auto& import : *function.mutable_opset_import()) {
      import.set_domain(normal_domain(import.domain()));
    }
  }
}

}  // namespace redfuser::onnx
