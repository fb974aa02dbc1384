// A model to be written to a file.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <utility>
#include <vector>

#include "redfuser/tensor.h"

namespace redfuser::onnx {

// The initializers stay apart from the proto until it is written, so that large ones are copied
// once at most.
struct OutputModel {
  ::onnx::ModelProto proto;
  std::vector<std::pair<std::string, Tensor>> initializers;
  bool checked = true;  // by ONNX's checker before it is written
};

// Writes the model, after a check by ONNX's checker where it is to be checked; above
// `external_threshold` bytes of initializers, those of at least 1 KiB go to `path`.data. Throws
// UserError that names the path. All of them stay inside a path that names a device or a pipe.
void write_model(OutputModel model, int64_t external_threshold, const std::string& path);

// The bytes of such a file with all initializers inside. UserError, naming `name`, for more than
// protobuf's 2 GiB.
std::string model_bytes(OutputModel model, const std::string& name);

}  // namespace redfuser::onnx
