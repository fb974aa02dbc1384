#include "ep/factory.h"

#include "ep/provider.h"

namespace redfuser::ep {

OrtEpDevice* Factory::device_for(const OrtHardwareDevice& hardware) {
  OrtEpDevice* device = nullptr;
  check(api_, api_.ep->CreateEpDevice(this, &hardware, nullptr, nullptr, &device));
  return device;
}

// ONNX Runtime calls every function of its own version, so none of those that 1.23 knows is null,
// whatever the interface says of it.
Factory::Factory(const Api& api) : OrtEpFactory{}, api_(api) {
  ort_version_supported = api.version;
  GetName = [](const OrtEpFactory*) noexcept { return kProviderName; };
  GetVendor = [](const OrtEpFactory*) noexcept { return "RedFuser"; };
  GetVendorId = [](const OrtEpFactory*) noexcept { return uint32_t{0}; };
  GetVersion = [](const OrtEpFactory*) noexcept { return REDFUSER_VERSION; };
  GetSupportedDevices = [](OrtEpFactory* factory, const OrtHardwareDevice* const* devices,
                           size_t count, OrtEpDevice** offered, size_t most,
                           size_t* number) noexcept {
    return guarded(self(factory).api_, [&] {
      *number = 0;
      for (size_t i = 0; i < count && *number < most; ++i) {
        if (self(factory).api_.ort->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) {
          continue;
        }
        offered[*number] = self(factory).device_for(*devices[i]);
        ++*number;
      }
    });
  };
  CreateEp = [](OrtEpFactory* factory, const OrtHardwareDevice* const*,
                const OrtKeyValuePairs* const*, size_t, const OrtSessionOptions* options,
                const OrtLogger* logger, OrtEp** ep) noexcept {
    return guarded(self(factory).api_, [&] {
      const Api& api = self(factory).api_;
      *ep = new Provider(api, read_options(api, *options), *logger);
    });
  };
  ReleaseEp = [](OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Provider*>(ep); };
  CreateAllocator = [](OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                       OrtAllocator** allocator) noexcept -> OrtStatus* {
    *allocator = nullptr;
    return nullptr;
  };
  ReleaseAllocator = [](OrtEpFactory*, OrtAllocator*) noexcept {};
  CreateDataTransfer = [](OrtEpFactory*, OrtDataTransferImpl** transfer) noexcept -> OrtStatus* {
    *transfer = nullptr;
    return nullptr;
  };
  IsStreamAware = [](const OrtEpFactory*) noexcept { return false; };
  CreateSyncStreamForDevice = [](OrtEpFactory*, const OrtMemoryDevice*, const OrtKeyValuePairs*,
                                 OrtSyncStreamImpl** stream) noexcept -> OrtStatus* {
    *stream = nullptr;
    return nullptr;
  };
}

}  // namespace redfuser::ep
