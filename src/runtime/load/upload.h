// Upload of weights to the GPU.
#pragma once

#include <vector>

#include "cuda/driver.h"
#include "redfuser/tensor.h"

namespace redfuser::runtime {

struct Placed {
  Tensor tensor;
  int64_t offset = 0;  // in the device's memory
};

// Copies tensors to their offsets in `memory`. Tensors are in order of their offsets and do not
// overlap; bytes between them may change. Large amounts use two page-locked buffers: up to
// `threads` threads (0: one per core) read files and fill deferred tensors into one while the other
// is copied. Returns when all copies are done.
void upload(const cuda::DevicePtr& device, const cuda::Buffer& memory,
            const std::vector<Placed>& tensors, int threads);

}  // namespace redfuser::runtime
