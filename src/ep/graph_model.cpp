#include "ep/graph_model.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "ep/attributes.h"
#include "ep/ort_graph.h"
#include "ep/value_types.h"

namespace redfuser::ep {
namespace {

void write_value(const Api& api, const OrtValueInfo& value, ::onnx::ValueInfoProto& proto) {
  proto.set_name(name_of(api, &value));
  write_type(api, value, *proto.mutable_type());
}

const OrtValue* constant_of(const Api& api, const OrtValueInfo& value) {
  if (!answer<bool>(api, &OrtApi::ValueInfo_IsConstantInitializer, &value)) return nullptr;
  return answer<const OrtValue*>(api, &OrtApi::ValueInfo_GetInitializerValue, &value);
}

class GraphWriter {
 public:
  GraphWriter(const Api& api, GraphModel& model, Weights weights)
      : api_(api), model_(model), weights_(weights) {}

  void write_node(const OrtNode& node, ::onnx::NodeProto& proto) {
    proto.set_name(answer<const char*>(api_, &OrtApi::Node_GetName, &node));
    proto.set_op_type(answer<const char*>(api_, &OrtApi::Node_GetOperatorType, &node));
    proto.set_domain(answer<const char*>(api_, &OrtApi::Node_GetDomain, &node));
    for (const std::string& name : names_of(api_, inputs_of(api_, node))) proto.add_input(name);
    for (const std::string& name : names_of(api_, outputs_of(api_, node))) proto.add_output(name);
    write_attributes(api_, node, proto);
    for (const NamedSubgraph& subgraph : subgraphs_of(api_, node)) {
      ::onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(subgraph.attribute);
      attribute.set_type(::onnx::AttributeProto::GRAPH);
      write_subgraph(*subgraph.graph, *attribute.mutable_g());
    }
  }

  // A value that no node of the model computes.
  void write_entry(const OrtValueInfo& value, ::onnx::GraphProto& proto) {
    const OrtValue* constant = constant_of(api_, value);
    if (constant == nullptr) return write_value(api_, value, *proto.add_input());
    ::onnx::TensorProto& tensor = *proto.add_initializer();
    tensor.set_name(name_of(api_, &value));
    write_weight(value, *constant, tensor);
  }

 private:
  // Bodies hold few weights, and these are copied.
  void write_subgraph(const OrtGraph& graph, ::onnx::GraphProto& proto) {
    proto.set_name(answer<const char*>(api_, &OrtApi::Graph_GetName, &graph));
    std::unordered_set<std::string> constants;
    for (const OrtValueInfo* value : initializers_of(api_, graph)) {
      const auto* constant =
          answer<const OrtValue*>(api_, &OrtApi::ValueInfo_GetInitializerValue, value);
      if (constant == nullptr || !constants.insert(name_of(api_, value)).second) continue;
      ::onnx::TensorProto& tensor = *proto.add_initializer();
      tensor.set_name(name_of(api_, value));
      write_tensor(api_, *constant, true, tensor);
    }
    for (const OrtValueInfo* value : inputs_of(api_, graph)) {
      if (constants.count(name_of(api_, value)) == 0) write_value(api_, *value, *proto.add_input());
    }
    for (const OrtValueInfo* value : outputs_of(api_, graph)) {
      write_value(api_, *value, *proto.add_output());
    }
    for (const OrtNode* node : nodes_of(api_, graph)) write_node(*node, *proto.add_node());
  }

  void write_weight(const OrtValueInfo& value, const OrtValue& constant,
                    ::onnx::TensorProto& tensor) {
    const TensorType type = tensor_type(api_, constant);
    const bool as_in_memory = bits_of(type.dtype) >= 8;
    if (!as_in_memory) return write_tensor(api_, constant, true, tensor);
    write_tensor(api_, constant, false, tensor);
    if (write_location(value, tensor)) return;
    const auto* data = answer<const void*>(api_, &OrtApi::GetTensorData, &constant);
    Tensor& weight = model_.weights[tensor.name()];
    weight = Tensor::wrap(type.dtype, type.dims, data, nullptr);
    if (weights_ == Weights::Borrowed) return;
    Tensor copy(type.dtype, type.dims);
    if (copy.bytes() > 0) std::memcpy(copy.mutable_data(), data, copy.bytes());
    weight = std::move(copy);
  }

  // True for a weight in a file beside the model.
  bool write_location(const OrtValueInfo& value, ::onnx::TensorProto& tensor) {
    const Released<OrtExternalInitializerInfo> info(
        answer<OrtExternalInitializerInfo*>(api_, &OrtApi::ValueInfo_GetExternalInitializerInfo,
                                            &value),
        api_.ort->ReleaseExternalInitializerInfo);
    if (info == nullptr) return false;
    const std::filesystem::path file = api_.ort->ExternalInitializerInfo_GetFilePath(info.get());
    std::error_code error;
    if (file.is_absolute() ||
        !std::filesystem::exists(std::filesystem::path(model_.name).parent_path() / file, error)) {
      return false;
    }
    const auto add = [&](const char* key, const std::string& text) {
      ::onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(text);
    };
    tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
    add("location", file.string());
    add("offset", std::to_string(api_.ort->ExternalInitializerInfo_GetFileOffset(info.get())));
    add("length", std::to_string(api_.ort->ExternalInitializerInfo_GetByteSize(info.get())));
    return true;
  }

  const Api& api_;
  GraphModel& model_;
  const Weights weights_;
};

}  // namespace

GraphModel model_of(const Api& api, const OrtGraph& graph, const std::vector<const OrtNode*>& nodes,
                    const std::vector<std::string>& outputs, Weights weights) {
  GraphModel model;
  model.name = model_path(api, graph);
  if (model.name.empty()) model.name = "model";
  ::onnx::ModelProto proto;
  proto.set_ir_version(answer<int64_t>(api, &OrtApi::Graph_GetOnnxIRVersion, &graph));
  for (const OperatorSet& set : operator_sets_of(api, graph)) {
    auto* import = proto.add_opset_import();
    import->set_domain(set.domain);
    import->set_version(set.version);
  }
  ::onnx::GraphProto& main = *proto.mutable_graph();
  main.set_name(answer<const char*>(api, &OrtApi::Graph_GetName, &graph));
  GraphWriter writer(api, model, weights);
  std::unordered_set<std::string> known;
  for (const OrtNode* node : nodes) {
    writer.write_node(*node, *main.add_node());
    for (const OrtValueInfo* value : outputs_of(api, *node)) {
      if (value == nullptr || !known.insert(name_of(api, value)).second) continue;
      const bool leaves =
          std::find(outputs.begin(), outputs.end(), name_of(api, value)) != outputs.end();
      write_value(api, *value, leaves ? *main.add_output() : *main.add_value_info());
    }
  }
  for (const OrtNode* node : nodes) {
    for (const auto& values : {inputs_of(api, *node), captured_by(api, *node)}) {
      for (const OrtValueInfo* value : values) {
        if (value == nullptr || !known.insert(name_of(api, value)).second) continue;
        writer.write_entry(*value, main);
      }
    }
  }
  model.bytes = proto.SerializeAsString();
  return model;
}

}  // namespace redfuser::ep
