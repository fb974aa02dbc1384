// ONNX's test_data_set folders: input_0.pb, input_1.pb, ..., output_0.pb, ...
#pragma once

#include <span>
#include <string>

#include "redfuser/io.h"

namespace redfuser::io {

// The K-th file belongs to values[K]. A value without a file is left out; a file without a value is
// a UserError, as is a folder with no file of this role.
NamedTensors load_data_set(const std::string& folder, std::span<const ValueInfo> values, Role role);

}  // namespace redfuser::io
