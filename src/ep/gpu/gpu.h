// The GPU of the providers whose tensors are in its memory.
#pragma once

#include <mutex>

#include "cuda/driver.h"
#include "ep/api.h"

namespace redfuser::ep {

// Opened at its first use, since a process that registers the library may never use it.
// Thread-safe.
class Gpu {
 public:
  explicit Gpu(const Api& api) : api_(api) {}

  const Api& api() const { return api_; }
  // Current on the calling thread. UserError if there is none.
  const cuda::DevicePtr& device() {
    std::call_once(opened_, [&] { device_ = cuda::Device::open(); });
    device_->make_current();
    return device_;
  }

 private:
  const Api api_;
  std::once_flag opened_;
  cuda::DevicePtr device_;
};

}  // namespace redfuser::ep
