// Operators without a lowering that a GPU computes.
#pragma once

#include <string_view>

namespace redfuser::codegen {

// Whether kernels are written for this operator of the domain (empty: ai.onnx). Some of its forms
// may have none: the step's error names them.
bool has_own_kernels(std::string_view domain, std::string_view name);

}  // namespace redfuser::codegen
