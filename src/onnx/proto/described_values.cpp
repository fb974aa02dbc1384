#include "onnx/proto/described_values.h"

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <string>

namespace redfuser::onnx {
namespace {

using Declarations = google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto>;

void name_dimensions(const Declarations& declarations, std::vector<ValueInfo>& values) {
  std::map<std::string, const ::onnx::TensorShapeProto*> shapes;
  for (const auto& declared : declarations) {
    shapes[declared.name()] = &declared.type().tensor_type().shape();
  }
  for (ValueInfo& value : values) {
    const auto shape = shapes.find(value.name);
    if (shape == shapes.end()) continue;
    const auto rank = static_cast<int>(value.dims.size());
    for (int k = 0; k < rank && rank == shape->second->dim_size(); ++k) {
      ValueInfo::Dimension& dim = value.dims[static_cast<size_t>(k)];
      if (dim.size < 0) dim.declared = shape->second->dim(k).dim_param();
    }
  }
}

// The classes that a ZipMap names for the columns of an output; empty for other outputs.
std::vector<std::string> classes_of(const ::onnx::GraphProto& graph, const std::string& output) {
  std::vector<std::string> classes;
  for (const auto& node : graph.node()) {
    if (node.op_type() != "ZipMap" || node.domain() != "ai.onnx.ml") continue;
    if (node.output_size() == 0 || node.output(0) != output) continue;
    for (const auto& attribute : node.attribute()) {
      for (const std::string& word : attribute.strings()) classes.push_back(word);
      for (const int64_t number : attribute.ints()) classes.push_back(std::to_string(number));
    }
  }
  return classes;
}

}  // namespace

void describe_values(const ::onnx::GraphProto& graph, std::vector<ValueInfo>& inputs,
                     std::vector<ValueInfo>& outputs) {
  name_dimensions(graph.input(), inputs);
  name_dimensions(graph.output(), outputs);
  std::set<std::string> names;
  for (const ValueInfo& input : inputs) {
    for (const ValueInfo::Dimension& dim : input.dims) names.insert(dim.declared);
  }
  for (ValueInfo& output : outputs) {
    output.classes = classes_of(graph, output.name);
    for (ValueInfo::Dimension& dim : output.dims) {
      if (dim.declared.empty() && names.count(dim.symbol) > 0) dim.declared = dim.symbol;
    }
  }
}

}  // namespace redfuser::onnx
