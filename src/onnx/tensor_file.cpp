#include "onnx/tensor_file.h"

#include <onnx/onnx_pb.h>

#include <climits>
#include <memory>

#include "base/error.h"
#include "onnx/atomic_file.h"
#include "onnx/model_file.h"
#include "onnx/tensor_proto.h"

namespace redfuser {

NamedTensor read_tensor_file(const std::string& path) {
  const auto proto = std::make_shared<onnx::TensorProto>(read_tensor_proto(path));
  return {proto->name(), to_tensor(*proto, proto, nullptr, path)};
}

void write_tensor_file(const std::string& path, const NamedTensor& tensor) {
  const onnx::TensorProto proto = to_proto(tensor.name, tensor.tensor);
  if (proto.ByteSizeLong() > INT_MAX) {
    user_error("{}: cannot be written: the tensor is larger than protobuf's 2 GiB", path);
  }
  const std::string bytes = proto.SerializeAsString();
  AtomicFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

}  // namespace redfuser
