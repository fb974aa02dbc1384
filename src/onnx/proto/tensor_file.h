// TensorProto files (`.pb`), as in ONNX's test_data_set_*/input_0.pb.
#pragma once

#include <memory>
#include <string>

#include "base/files/output_file.h"
#include "redfuser/tensor.h"

namespace redfuser::onnx {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// Throws UserError that names the file when it cannot be read as a tensor or, where `kind` is
// Sequence or Optional, as one of these.
NamedTensor read_tensor_file(const std::string& path, DType kind = DType::Undefined);
// Writes the tensor's bytes; the file takes its name with commit().
std::unique_ptr<OutputFile> prepare_tensor_file(const std::string& path, const NamedTensor& tensor);
// Replaces the file only when the new one is whole; throws UserError that names it otherwise.
void write_tensor_file(const std::string& path, const NamedTensor& tensor);

}  // namespace redfuser::onnx
