#include "onnx/proto/tensor_file.h"

#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>

#include <climits>
#include <memory>

#include "base/error.h"
#include "base/files/output_file.h"
#include "onnx/proto/model_file.h"
#include "onnx/proto/tensor_proto.h"
#include "onnx/proto/value_proto.h"

namespace redfuser::onnx {

NamedTensor read_tensor_file(const std::string& path, DType kind) {
  if (kind == DType::Sequence) {
    const ::onnx::SequenceProto proto = read_sequence_proto(path);
    return {proto.name(), to_sequence(proto, path)};
  }
  if (kind == DType::Optional) {
    const ::onnx::OptionalProto proto = read_optional_proto(path);
    return {proto.name(), to_optional(proto, path)};
  }
  const auto proto = std::make_shared<::onnx::TensorProto>(read_tensor_proto(path));
  return {proto->name(), to_tensor(*proto, proto, nullptr, path)};
}

std::unique_ptr<OutputFile> prepare_tensor_file(const std::string& path,
                                                const NamedTensor& tensor) {
  const auto serialized = [&](const auto& proto) {
    if (proto.ByteSizeLong() > INT_MAX) {
      user_error("{}: cannot be written: the value is larger than protobuf's 2 GiB", path);
    }
    return proto.SerializeAsString();
  };
  const DType kind = tensor.tensor.dtype();
  const std::string bytes =
      kind == DType::Sequence   ? serialized(sequence_proto(tensor.name, tensor.tensor))
      : kind == DType::Optional ? serialized(optional_proto(tensor.name, tensor.tensor))
                                : serialized(to_proto(tensor.name, tensor.tensor));
  auto file = std::make_unique<OutputFile>(path);
  file->write(bytes);
  file->close();
  return file;
}

void write_tensor_file(const std::string& path, const NamedTensor& tensor) {
  prepare_tensor_file(path, tensor)->commit();
}

}  // namespace redfuser::onnx
