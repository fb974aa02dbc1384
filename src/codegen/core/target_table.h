// Targets of kernels that are generated without a GPU.
#pragma once

#include <string_view>

#include "codegen/core/gpu_step.h"

namespace redfuser::codegen {

// The target of a row of select::known_machines(). UserError with all names for an unknown one.
Target target_named(std::string_view name);

}  // namespace redfuser::codegen
