#include "onnx/proto/value_proto.h"

#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>

#include "base/error.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {
namespace {

constexpr int kMaxDepth = 8;

void check_depth(int depth, const std::string& where) {
  if (depth > kMaxDepth) user_error("{}: values nest more than {} deep", where, kMaxDepth);
}

}  // namespace

Tensor to_sequence(const ::onnx::SequenceProto& proto, const std::string& where, int depth) {
  check_depth(depth, where);
  std::vector<Tensor> elements;
  for (const auto& tensor : proto.tensor_values()) {
    elements.push_back(to_tensor(tensor, nullptr, nullptr, where));
  }
  for (const auto& inner : proto.sequence_values()) {
    elements.push_back(to_sequence(inner, where, depth + 1));
  }
  for (const auto& inner : proto.optional_values()) {
    elements.push_back(to_optional(inner, where, depth + 1));
  }
  if (proto.map_values_size() != 0 || proto.sparse_tensor_values_size() != 0) {
    user_error("{}: sequences of maps and of sparse tensors are not supported", where);
  }
  return Tensor::sequence(std::move(elements));
}

Tensor to_optional(const ::onnx::OptionalProto& proto, const std::string& where, int depth) {
  check_depth(depth, where);
  switch (proto.elem_type()) {
    case ::onnx::OptionalProto::TENSOR:
      if (!proto.has_tensor_value()) return Tensor::optional({});
      return Tensor::optional(to_tensor(proto.tensor_value(), nullptr, nullptr, where));
    case ::onnx::OptionalProto::SEQUENCE:
      if (!proto.has_sequence_value()) return Tensor::optional({});
      return Tensor::optional(to_sequence(proto.sequence_value(), where, depth + 1));
    case ::onnx::OptionalProto::OPTIONAL:
      if (!proto.has_optional_value()) return Tensor::optional({});
      return Tensor::optional(to_optional(proto.optional_value(), where, depth + 1));
    case ::onnx::OptionalProto::UNDEFINED:
      return Tensor::optional({});
    default:
      user_error("{}: optional maps and sparse tensors are not supported", where);
  }
}

::onnx::SequenceProto sequence_proto(const std::string& name, const Tensor& sequence) {
  ::onnx::SequenceProto proto;
  proto.set_name(name);
  proto.set_elem_type(::onnx::SequenceProto::TENSOR);
  for (const Tensor& element : sequence.elements()) {
    if (element.dtype() == DType::Sequence) {
      proto.set_elem_type(::onnx::SequenceProto::SEQUENCE);
      *proto.add_sequence_values() = sequence_proto("", element);
    } else if (element.dtype() == DType::Optional) {
      proto.set_elem_type(::onnx::SequenceProto::OPTIONAL);
      *proto.add_optional_values() = optional_proto("", element);
    } else {
      *proto.add_tensor_values() = to_proto("", element);
    }
  }
  return proto;
}

::onnx::OptionalProto optional_proto(const std::string& name, const Tensor& optional) {
  ::onnx::OptionalProto proto;
  proto.set_name(name);
  const std::vector<Tensor> elements = optional.elements();
  if (elements.empty()) {
    proto.set_elem_type(::onnx::OptionalProto::UNDEFINED);
  } else if (elements[0].dtype() == DType::Sequence) {
    proto.set_elem_type(::onnx::OptionalProto::SEQUENCE);
    *proto.mutable_sequence_value() = sequence_proto("", elements[0]);
  } else if (elements[0].dtype() == DType::Optional) {
    proto.set_elem_type(::onnx::OptionalProto::OPTIONAL);
    *proto.mutable_optional_value() = optional_proto("", elements[0]);
  } else {
    proto.set_elem_type(::onnx::OptionalProto::TENSOR);
    *proto.mutable_tensor_value() = to_proto("", elements[0]);
  }
  return proto;
}

}  // namespace redfuser::onnx
