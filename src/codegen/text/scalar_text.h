// The CUDA patterns of the table of scalar operations (ir/scalars/operations.h), filled in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "redfuser/tensor.h"

namespace redfuser::codegen {

// `pattern` on values of type `dtype`; of more than two it is taken from the left.
std::string scalar_text(std::string_view pattern, DType dtype,
                        const std::vector<std::string>& args);

}  // namespace redfuser::codegen
