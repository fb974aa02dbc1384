// Weights on their way to the GPU.
#pragma once

#include <vector>

#include "cuda/driver.h"
#include "redfuser/tensor.h"

namespace redfuser::runtime {

struct Placed {
  Tensor tensor;
  int64_t offset = 0;  // in the device's memory
};

// Copies tensors to where they are placed in `memory`, in order of their offsets, without overlap;
// bytes between them may change. Larger amounts pass through two page-locked buffers: up to
// `threads` threads (0: one per core) page files in and put deferred tensors together in one while
// the other is copied. Returns when all are there.
void upload(const cuda::DevicePtr& device, const cuda::Buffer& memory,
            const std::vector<Placed>& tensors, int threads);

}  // namespace redfuser::runtime
