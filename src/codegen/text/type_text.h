// Element types as CUDA text.
#pragma once

#include <string_view>

#include "redfuser/tensor.h"

namespace redfuser::codegen {

// The type in memory: "float", "half_t", "long long". Elements of fewer than 8 bits take a byte
// each, as in a Tensor.
std::string_view storage_type(DType dtype);
// The type in registers: "float", "double", "long long", "unsigned long long" (uint64), "bool".
// Floats of 8 bits and fewer stay codes ("e4m3fn_t").
std::string_view value_type(DType dtype);

}  // namespace redfuser::codegen
