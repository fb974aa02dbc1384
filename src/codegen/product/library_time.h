// The time of a product library's call, by estimate.
#pragma once

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// Microseconds at these sizes; 0 where it has nothing to compute. Of a kernel, what its maker says.
double time_of(const GpuCall& call, const KnownSizes& sizes, const Target& target);

}  // namespace redfuser::codegen
