// Element types by their ONNX numbers.
#pragma once

#include <cstdint>
#include <string>

#include "redfuser/tensor.h"

namespace redfuser {

// The type of onnx.TensorProto.DataType `code`; Undefined for types that RedFuser does not support.
DType dtype_of(int64_t code);

// For messages; unsupported types too: "float32", "complex128", "of number 99".
std::string type_name(int64_t code);

}  // namespace redfuser
