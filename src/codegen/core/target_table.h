// GPUs that kernels are generated for without one at hand.
#pragma once

#include <string_view>

#include "codegen/core/gpu_step.h"

namespace redfuser::codegen {

// The target of a row of select::known_machines(). UserError with the names that there are.
Target target_named(std::string_view name);

}  // namespace redfuser::codegen
