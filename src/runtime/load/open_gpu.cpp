#include "runtime/load/open_gpu.h"

#include <future>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "cuda/cublaslt.h"
#include "cuda/nvrtc.h"
#include "redfuser/device.h"

namespace redfuser {
namespace {

struct Early {
  std::mutex mutex;
  std::shared_future<cuda::DevicePtr> device;
  std::promise<bool> products;  // whether the first session has any
  bool told = false;
  std::future<void> libraries;

  void tell(bool has_products) {
    if (!libraries.valid() || std::exchange(told, true)) return;
    products.set_value(has_products);
  }
};

Early& early() {
  static Early result;
  return result;
}

// Errors are ignored here; the session reports them.
cuda::DevicePtr open_device() {
  try {
    return cuda::Device::open();
  } catch (const UserError&) {
    return nullptr;
  }
}

// Libraries are loaded while the driver starts; calls that need a context follow. Without
// the driver's library the other libraries are not opened: they would only take memory.
void open_libraries(const std::shared_future<cuda::DevicePtr>& opened,
                    std::future<bool> has_products) {
  try {
    cuda::driver();
    cuda::nvrtc_version();  // part of the kernel cache's key
    cuda::ProductLibrary::version();
    const cuda::DevicePtr device = opened.get();
    if (device == nullptr || !has_products.get()) return;
    device->make_current();
    cuda::ProductLibrary(device).load_proposals();
  } catch (const UserError&) {
  }
}

}  // namespace

GpuWarmup::GpuWarmup() {
  const std::lock_guard lock(early().mutex);
  if (early().libraries.valid()) return;
  early().products = {};
  early().told = false;
  early().device = std::async(std::launch::async, open_device).share();
  early().libraries =
      std::async(std::launch::async, open_libraries, early().device, early().products.get_future());
}

GpuWarmup::~GpuWarmup() {
  const std::lock_guard lock(early().mutex);
  early().tell(false);
  if (early().libraries.valid()) early().libraries.wait();
  early().libraries = {};
  early().device = {};
}

namespace runtime {

cuda::DevicePtr open_gpu(bool has_products) {
  const std::lock_guard lock(early().mutex);
  early().tell(has_products);
  // Kept until the context has another owner.
  const cuda::DevicePtr opened = early().device.valid() ? early().device.get() : nullptr;
  early().device = {};
  return cuda::Device::open();
}

}  // namespace runtime

}  // namespace redfuser
