#include "ep/gpu/gpu_factory.h"

#include "ep/gpu/gpu_provider.h"
#include "ep/gpu/gpu_stream.h"

namespace redfuser::ep {
namespace {

OrtMemoryInfo* memory_info(const Api& api) {
  OrtMemoryInfo* info = nullptr;
  check(api,
        api.ort->CreateMemoryInfo_V2("RedFuserCuda", OrtMemoryInfoDeviceType_GPU, kNvidia, 0,
                                     OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, &info));
  return info;
}

}  // namespace

GpuFactory::GpuFactory(const Api& api)
    : Factory(api, kGpuProviderName),
      gpu_(api),
      memory_(gpu_),
      kernels_(gpu_),
      info_(memory_info(api), api.ort->ReleaseMemoryInfo),
      told_(nullptr, api.ep->ReleaseHardwareDevice) {
  CreateAllocator = [](OrtEpFactory* factory, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                       OrtAllocator** allocator) noexcept {
    GpuFactory& own = self(factory);
    return guarded(own.api_,
                   [&] { *allocator = new GpuAllocator(own.api_, own.memory_, *own.info_); });
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator* allocator) noexcept {
    delete static_cast<GpuAllocator*>(allocator);
  };
  CreateDataTransfer = [](OrtEpFactory* factory, OrtDataTransferImpl** transfer) noexcept {
    return guarded(self(factory).api_, [&] { *transfer = new GpuCopies(self(factory).gpu_); });
  };
  IsStreamAware = [](const OrtEpFactory*) noexcept { return true; };
  CreateSyncStreamForDevice = [](OrtEpFactory* factory, const OrtMemoryDevice*,
                                 const OrtKeyValuePairs*, OrtSyncStreamImpl** stream) noexcept {
    GpuFactory& own = self(factory);
    return guarded(own.api_, [&] { *stream = new GpuStream(own.gpu_, own.memory_, nullptr); });
  };
}

const OrtHardwareDevice& GpuFactory::hardware(
    const std::vector<const OrtHardwareDevice*>& machine) {
  for (const OrtHardwareDevice* device : machine) {
    if (api_.ort->HardwareDevice_Type(device) == OrtHardwareDeviceType_GPU &&
        api_.ort->HardwareDevice_VendorId(device) == kNvidia) {
      return *device;
    }
  }
  OrtHardwareDevice* device = nullptr;
  check(api_, api_.ep->CreateHardwareDevice(OrtHardwareDeviceType_GPU, kNvidia, 0, "NVIDIA",
                                            nullptr, &device));
  told_.reset(device);
  return *device;
}

std::vector<OrtEpDevice*> GpuFactory::devices(
    const std::vector<const OrtHardwareDevice*>& machine) {
  if (!cuda::Device::is_there()) return {};
  OrtEpDevice* const device = device_for(hardware(machine));
  check(api_, api_.ep->EpDevice_AddAllocatorInfo(device, info_.get()));
  return {device};
}

Provider* GpuFactory::provider(const OrtSessionOptions& options, const OrtLogger& logger) {
  ProviderOptions read = read_options(api_, name_, options);
  read.session.device = "cuda";
  return new GpuProvider(gpu_, memory_, kernels_, std::move(read), logger);
}

}  // namespace redfuser::ep
