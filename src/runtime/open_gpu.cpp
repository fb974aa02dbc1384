#include "runtime/open_gpu.h"

#include <future>
#include <mutex>

#include "base/error.h"
#include "cuda/cublaslt.h"
#include "cuda/nvrtc.h"
#include "redfuser/device.h"

namespace redfuser {
namespace {

struct Early {
  std::mutex mutex;
  std::shared_future<cuda::DevicePtr> device;
};

Early& early() {
  static Early result;
  return result;
}

// Errors come again, from the session that meets them.
cuda::DevicePtr open_libraries() {
  cuda::DevicePtr device;
  try {
    device = cuda::Device::open();
    const cuda::ProductLibrary products(device);
    cuda::nvrtc_version();  // loads it: the cache of kernels asks for its version
  } catch (const UserError&) {
  }
  return device;
}

}  // namespace

EarlyGpu::EarlyGpu() {
  const std::lock_guard lock(early().mutex);
  if (early().device.valid()) return;
  early().device = std::async(std::launch::async, open_libraries).share();
}

EarlyGpu::~EarlyGpu() {
  const std::lock_guard lock(early().mutex);
  if (early().device.valid()) early().device.wait();
  early().device = {};
}

cuda::DevicePtr open_gpu() {
  const std::lock_guard lock(early().mutex);
  // Held until the context has its next owner.
  const cuda::DevicePtr opened = early().device.valid() ? early().device.get() : nullptr;
  early().device = {};
  return cuda::Device::open();
}

}  // namespace redfuser
