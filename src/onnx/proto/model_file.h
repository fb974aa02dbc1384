// Reading a protobuf model file.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace onnx {
class ModelProto;
class OptionalProto;
class SequenceProto;
class TensorProto;
}  // namespace onnx

namespace redfuser::onnx {

// Parses the file; sparse tensors become dense ones (sparse_tensors.h). Throws UserError, one line
// that names the file, when it is missing, a directory, empty, truncated, longer than protobuf's 2
// GiB, or no ONNX model.
std::shared_ptr<::onnx::ModelProto> read_model_proto(const std::string& path);
// The same for a file's bytes; errors call it `name`.
std::shared_ptr<::onnx::ModelProto> read_model_proto(std::string_view bytes,
                                                     const std::string& name);
::onnx::TensorProto read_tensor_proto(const std::string& path);
::onnx::SequenceProto read_sequence_proto(const std::string& path);
::onnx::OptionalProto read_optional_proto(const std::string& path);

}  // namespace redfuser::onnx
