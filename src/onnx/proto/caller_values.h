// What a caller gives in place of what a file has (redfuser::LoadOptions).
#pragma once

#include <string>

#include "redfuser/redfuser.h"

namespace onnx {
class ModelProto;
}

namespace redfuser::onnx {

// The caller's tensors by initializer: its weights, and parts of its files. The former come first
// where both have one. Throws UserError, starting with `path`, for names and locations that no
// initializer has, and for files that do not hold what an initializer asks for.
NamedTensors given_weights(const ::onnx::ModelProto& model, const std::string& path,
                           const LoadOptions& options);
// Gives open dimensions of the main graph's inputs the caller's sizes, those by name first. Throws
// UserError, starting with `path`, for a size below 0.
void set_sizes(::onnx::ModelProto& model, const std::string& path, const LoadOptions& options);

}  // namespace redfuser::onnx
