// Opening the GPU, perhaps ahead of the first session.
#pragma once

#include "cuda/driver.h"

namespace redfuser::runtime {

// The first GPU. Waits for a GpuWarmup, and tells it whether the program has products. UserError
// without a GPU.
cuda::DevicePtr open_gpu(bool has_products);

}  // namespace redfuser::runtime
