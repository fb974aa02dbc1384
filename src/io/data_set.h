// ONNX's test_data_set folders: input_0.pb, input_1.pb, ..., output_0.pb, ...
#pragma once

#include <span>
#include <string>

#include "redfuser/io.h"

namespace redfuser::io {

// The K-th file is the tensor of values[K]. Values without a file are left out; a file without a
// value is a UserError, as is a folder without files of this role.
NamedTensors load_data_set(const std::string& folder, std::span<const ValueInfo> values, Role role);

}  // namespace redfuser::io
