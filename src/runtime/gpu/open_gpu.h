// The GPU, opened ahead of its first session.
#pragma once

#include "cuda/driver.h"

namespace redfuser::runtime {

// The first GPU, for a program with products or without; that GpuWarmup has opened it is awaited
// first. UserError if there is none.
cuda::DevicePtr open_gpu(bool has_products);

}  // namespace redfuser::runtime
