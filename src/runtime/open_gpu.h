// The GPU, opened ahead of its first session.
#pragma once

#include "cuda/driver.h"

namespace redfuser {

// The first GPU; what EarlyGpu has begun is awaited first. UserError if there is none.
cuda::DevicePtr open_gpu();

}  // namespace redfuser
