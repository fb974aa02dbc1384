// Element types as CUDA text.
#pragma once

#include <string_view>

#include "redfuser/tensor.h"

namespace redfuser::codegen {

// "float", "half_t", "long long": what memory holds.
std::string_view storage_type(DType dtype);
// "float", "double", "long long", "unsigned long long" (uint64), "bool": what is computed with.
std::string_view value_type(DType dtype);

}  // namespace redfuser::codegen
