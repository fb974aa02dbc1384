#include "onnx/export/normalise.h"

#include <onnx/onnx_pb.h>

#include <climits>

#include "base/error.h"
#include "onnx/functions/functions.h"
#include "onnx/proto/external_data.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

// The nodes of a file, with those of subgraphs.
class Normaliser {
 public:
  explicit Normaliser(const std::string& path) : external_(path), where_(path) {}

  void nodes(google::protobuf::RepeatedPtrField<::onnx::NodeProto>& nodes) {
    for (auto& node : nodes) {
      node.set_domain(normal_domain(node.domain()));
      for (auto& attribute : *node.mutable_attribute()) normalise(attribute);
    }
  }

 private:
  void normalise(::onnx::AttributeProto& attribute) {
    if (attribute.has_t()) embed(*attribute.mutable_t());
    for (auto& tensor : *attribute.mutable_tensors()) embed(tensor);
    if (attribute.has_g()) subgraph(*attribute.mutable_g());
    for (auto& graph : *attribute.mutable_graphs()) subgraph(graph);
  }

  void subgraph(::onnx::GraphProto& graph) {
    for (auto& tensor : *graph.mutable_initializer()) embed(tensor);
    nodes(*graph.mutable_node());
  }

  void embed(::onnx::TensorProto& proto) {
    if (proto.data_location() != ::onnx::TensorProto::EXTERNAL) return;
    const Tensor tensor = to_tensor(proto, nullptr, &external_, where_);
    const std::string name = proto.name();
    embedded_ += tensor.bytes();
    if (embedded_ > INT_MAX) {
      user_error(
          "{}: cannot be written: the tensors of its subgraphs and attributes, up to \"{}\", "
          "are more than protobuf's 2 GiB",
          where_, name);
    }
    proto = to_proto(name, tensor);
  }

  ExternalData external_;
  const std::string& where_;
  size_t embedded_ = 0;  // bytes
};

}  // namespace

void normalise(::onnx::ModelProto& proto, const std::string& path) {
  Normaliser normaliser(path);
  normaliser.nodes(*proto.mutable_graph()->mutable_node());
  for (auto& import : *proto.mutable_opset_import()) {
    import.set_domain(normal_domain(import.domain()));
  }
  for (auto& function : *proto.mutable_functions()) {
    normaliser.nodes(*function.mutable_node());
    for (auto& import : *function.mutable_opset_import()) {
      import.set_domain(normal_domain(import.domain()));
    }
  }
}

}  // namespace redfuser::onnx
