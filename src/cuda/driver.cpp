#include "cuda/driver.h"

#include <atomic>

#include "base/error.h"
#include "cuda/library.h"

namespace redfuser::cuda {
namespace {

DriverApi load_driver() {
  const Library library({"the CUDA driver", {"libcuda.so.1"}});
  DriverApi api;
#define RF_BIND(name) library.bind(api.name, #name)
  RF_BIND(cuInit);
  RF_BIND(cuDriverGetVersion);
  RF_BIND(cuGetErrorName);
  RF_BIND(cuGetErrorString);
  RF_BIND(cuDeviceGetCount);
  RF_BIND(cuDeviceGet);
  RF_BIND(cuDeviceGetName);
  RF_BIND(cuDeviceGetAttribute);
  RF_BIND(cuDeviceGetPCIBusId);
  RF_BIND(cuDeviceTotalMem_v2);
  RF_BIND(cuDevicePrimaryCtxRetain);
  RF_BIND(cuDevicePrimaryCtxRelease_v2);
  RF_BIND(cuCtxSetCurrent);
  RF_BIND(cuCtxSynchronize);
  RF_BIND(cuMemGetInfo_v2);
  RF_BIND(cuMemAlloc_v2);
  RF_BIND(cuMemFree_v2);
  RF_BIND(cuMemHostAlloc);
  RF_BIND(cuMemFreeHost);
  RF_BIND(cuMemcpyDtoDAsync_v2);
  RF_BIND(cuMemcpyHtoDAsync_v2);
  RF_BIND(cuMemcpyDtoHAsync_v2);
  RF_BIND(cuMemcpy2DAsync_v2);
  RF_BIND(cuMemsetD8Async);
  RF_BIND(cuMemsetD2D8Async);
  RF_BIND(cuStreamCreate);
  RF_BIND(cuStreamDestroy_v2);
  RF_BIND(cuStreamSynchronize);
  RF_BIND(cuStreamWaitEvent);
  RF_BIND(cuStreamBeginCapture_v2);
  RF_BIND(cuStreamEndCapture);
  RF_BIND(cuStreamGetCaptureInfo_v2);
  RF_BIND(cuStreamUpdateCaptureDependencies);
  RF_BIND(cuGraphInstantiateWithFlags);
  RF_BIND(cuGraphExecUpdate_v2);
  RF_BIND(cuGraphExecKernelNodeSetParams_v2);
  RF_BIND(cuGraphLaunch);
  RF_BIND(cuGraphExecDestroy);
  RF_BIND(cuGraphDestroy);
  RF_BIND(cuEventCreate);
  RF_BIND(cuEventDestroy_v2);
  RF_BIND(cuEventRecord);
  RF_BIND(cuEventRecordWithFlags);
  RF_BIND(cuEventSynchronize);
  RF_BIND(cuEventElapsedTime);
  RF_BIND(cuModuleLoadData);
  RF_BIND(cuModuleUnload);
  RF_BIND(cuModuleGetFunction);
  RF_BIND(cuFuncSetAttribute);
  RF_BIND(cuFuncGetAttribute);
  RF_BIND(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  RF_BIND(cuOccupancyMaxActiveClusters);
  RF_BIND(cuTensorMapEncodeTiled);
  RF_BIND(cuTensorMapEncodeIm2col);
  RF_BIND(cuLaunchKernelEx);
#undef RF_BIND
  return api;
}

std::string error_text(Result result) {
  const char *name = nullptr, *text = nullptr;
  driver().cuGetErrorName(result, &name);
  driver().cuGetErrorString(result, &text);
  return fmt::format("{} ({})", text != nullptr ? text : "unknown error",
                     name != nullptr ? name : fmt::to_string(result).c_str());
}

int attribute(int device, DeviceAttribute which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, device), "reading a property of the GPU");
  return value;
}

DeviceInfo read_info(int device) {
  DeviceInfo info;
  char name[256] = {};
  check(driver().cuDeviceGetName(name, sizeof name, device), "reading the GPU's name");
  info.name = name;
  info.architecture =
      attribute(device, kComputeCapabilityMajor) * 10 + attribute(device, kComputeCapabilityMinor);
  info.multiprocessors = attribute(device, kMultiprocessorCount);
  info.shared_bytes = attribute(device, kMaxSharedMemoryPerBlockOptin);
  info.l2_bytes = attribute(device, kL2CacheSize);
  info.sm_mhz = attribute(device, kClockRate) / 1000;
  const int memory_clock = attribute(device, kMemoryClockRate);
  info.memory_mhz = memory_clock / 1000;
  // Two transfers a clock.
  info.memory_rate = 2e-3 * memory_clock / 8 * attribute(device, kMemoryBusWidth);
  char bus[32] = {};
  check(driver().cuDeviceGetPCIBusId(bus, sizeof bus, device), "reading the GPU's bus address");
  info.pci_bus = bus;
  size_t bytes = 0;
  check(driver().cuDeviceTotalMem_v2(&bytes, device), "reading the GPU's memory size");
  info.memory_bytes = static_cast<int64_t>(bytes);
  check(driver().cuDriverGetVersion(&info.driver_version), "reading the driver's version");
  return info;
}

std::atomic<int64_t> allocation_count{0};

}  // namespace

int64_t allocations() { return allocation_count; }

const DriverApi& driver() {
  static const DriverApi api = load_driver();
  return api;
}

void check(Result result, const char* what) {
  if (result == kSuccess) return;
  const std::string text = error_text(result);
  if (result == kOutOfMemory) user_error("out of GPU memory while {}: {}", what, text);
  if (result == kNoDevice || result == kInsufficientDriver) {
    user_error("no usable GPU: {}", text);
  }
  internal_error("CUDA driver, {}: {}", what, text);
}

bool Device::is_there() {
  try {
    int count = 0;
    return driver().cuInit(0) == kSuccess && driver().cuDeviceGetCount(&count) == kSuccess &&
           count > 0;
  } catch (const UserError&) {
    return false;
  }
}

std::shared_ptr<const Device> Device::open() {
  const Result started = driver().cuInit(0);
  if (started != kSuccess)
    user_error("the CUDA driver finds no usable GPU: {}", error_text(started));
  int count = 0;
  check(driver().cuDeviceGetCount(&count), "counting GPUs");
  if (count == 0) user_error("the CUDA driver shows no GPU");
  std::shared_ptr<Device> device(new Device());
  check(driver().cuDeviceGet(&device->ordinal_, 0), "opening the GPU");
  device->info_ = read_info(device->ordinal_);
  check(driver().cuDevicePrimaryCtxRetain(&device->context_, device->ordinal_),
        "opening the GPU's context");
  device->make_current();
  return device;
}

Device::~Device() {
  if (context_ != nullptr) driver().cuDevicePrimaryCtxRelease_v2(ordinal_);
}

void Device::make_current() const {
  check(driver().cuCtxSetCurrent(context_), "entering the GPU's context");
}

int64_t Device::free_bytes() const {
  size_t free = 0, total = 0;
  check(driver().cuMemGetInfo_v2(&free, &total), "reading the GPU's free memory");
  return static_cast<int64_t>(free);
}

void Device::synchronize() const { check(driver().cuCtxSynchronize(), "waiting for the GPU"); }

Buffer::Buffer(DevicePtr device, int64_t bytes, const char* what)
    : device_(std::move(device)), bytes_(bytes) {
  if (bytes == 0) return;
  ++allocation_count;
  const Result result = driver().cuMemAlloc_v2(&address_, static_cast<size_t>(bytes));
  if (result == kOutOfMemory) {
    user_error("out of GPU memory: {} needs {} bytes; {} of {} are free", what, bytes,
               device_->free_bytes(), device_->info().memory_bytes);
  }
  check(result, "allocating memory");
}

Buffer::~Buffer() {
  if (address_ != 0) driver().cuMemFree_v2(address_);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

HostBuffer::HostBuffer(DevicePtr device, int64_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  if (bytes == 0) return;
  ++allocation_count;
  check(driver().cuMemHostAlloc(&address_, static_cast<size_t>(bytes), 0),
        "allocating pinned memory");
}

HostBuffer::~HostBuffer() {
  if (address_ != nullptr) driver().cuMemFreeHost(address_);
}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Module::Module(DevicePtr device, const std::string& cubin, const std::string& name)
    : device_(std::move(device)) {
  const Result result = driver().cuModuleLoadData(&module_, cubin.data());
  if (result == kInvalidImage || result == kNoBinaryForGpu) {
    user_error(
        "the CUDA driver (for CUDA {}.{}) does not take the kernel \"{}\": {}; is NVRTC newer "
        "than the driver?",
        device_->info().driver_version / 1000, device_->info().driver_version % 1000 / 10, name,
        error_text(result));
  }
  check(result, "loading a kernel");
}

Module::~Module() {
  if (module_ != nullptr) driver().cuModuleUnload(module_);
}

namespace {

// Blocks, or clusters of them, that the device has the room for.
int most_active(FunctionHandle function, int threads, int shared_bytes, int cluster) {
  const auto size = static_cast<unsigned>(cluster);
  int count = 0;
  if (cluster == 1) {
    check(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, function, threads,
                                                               static_cast<size_t>(shared_bytes)),
          "counting a kernel's blocks");
    return count;
  }
  LaunchAttribute attribute = {};
  attribute.id = kAttributeClusterDimension;
  attribute.cluster[0] = size;
  attribute.cluster[1] = attribute.cluster[2] = 1;
  const LaunchConfig config = {{size, 1, 1},
                               {static_cast<unsigned>(threads), 1, 1},
                               static_cast<unsigned>(shared_bytes),
                               nullptr,
                               &attribute,
                               1};
  check(driver().cuOccupancyMaxActiveClusters(&count, function, &config),
        "counting a kernel's clusters");
  return count;
}

}  // namespace

FunctionHandle Module::function(const std::string& name, int threads, int shared_bytes,
                                int cluster) const {
  // The limit without an attribute; it includes static shared memory.
  constexpr int kUnasked = 48 * 1024;
  constexpr int kPortableCluster = 8;
  FunctionHandle function = nullptr;
  check(driver().cuModuleGetFunction(&function, module_, name.c_str()), "looking up a kernel");
  int static_bytes = 0;
  if (shared_bytes > 0) {
    check(driver().cuFuncGetAttribute(&static_bytes, kSharedSizeBytes, function),
          "reading the size of a kernel's shared memory");
  }
  if (static_bytes + shared_bytes > kUnasked) {
    check(driver().cuFuncSetAttribute(function, kMaxDynamicSharedSizeBytes, shared_bytes),
          "allowing a kernel's shared memory");
  }
  if (cluster > kPortableCluster) {
    check(driver().cuFuncSetAttribute(function, kNonPortableClusterSizeAllowed, 1),
          "allowing a kernel's clusters");
  }
  if (most_active(function, threads, shared_bytes, cluster) == 0) {
    internal_error(
        "the GPU has not the room for a block of \"{}\": {} threads, {} bytes of shared memory, "
        "clusters of {}",
        name, threads, static_bytes + shared_bytes, cluster);
  }
  return function;
}

}  // namespace redfuser::cuda
