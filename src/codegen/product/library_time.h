// The estimated time of a call of the product library.
#pragma once

#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// Microseconds at these sizes; 0 for empty products. For a kernel launch its own estimate.
double time_of(const GpuCall& call, const KnownSizes& sizes, const Target& target);

// Of all calls of a step, of which the second call of the library starts while the first one ends.
double time_of(const GpuStep& step, const KnownSizes& sizes, const Target& target);

}  // namespace redfuser::codegen
