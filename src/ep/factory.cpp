#include "ep/factory.h"

#include "base/error.h"
#include "ep/cpu_node.h"

namespace redfuser::ep {
namespace {

class CpuProvider final : public Provider {
 public:
  using Provider::Provider;

 private:
  CompiledNode* node(NodeParts parts) const override { return new CpuNode(std::move(parts)); }
};

}  // namespace

OrtEpDevice* Factory::device_for(const OrtHardwareDevice& hardware) {
  OrtEpDevice* device = nullptr;
  check(api_, api_.ep->CreateEpDevice(this, &hardware, nullptr, nullptr, &device));
  return device;
}

// ONNX Runtime calls every function of its own version, so none of those that 1.23 knows is null,
// whatever the interface says of it.
Factory::Factory(const Api& api, const char* name) : OrtEpFactory{}, api_(api), name_(name) {
  ort_version_supported = api.version;
  GetName = [](const OrtEpFactory* factory) noexcept {
    return static_cast<const Factory*>(factory)->name_;
  };
  GetVendor = [](const OrtEpFactory*) noexcept { return "RedFuser"; };
  GetVendorId = [](const OrtEpFactory*) noexcept { return uint32_t{0}; };
  GetVersion = [](const OrtEpFactory*) noexcept { return REDFUSER_VERSION; };
  GetSupportedDevices = [](OrtEpFactory* factory, const OrtHardwareDevice* const* machine,
                           size_t count, OrtEpDevice** offered, size_t most,
                           size_t* number) noexcept {
    return guarded(self(factory).api_, [&] {
      *number = 0;
      for (OrtEpDevice* device : self(factory).devices({machine, machine + count})) {
        if (*number == most) user_error("ONNX Runtime has no room for {} devices", *number + 1);
        offered[(*number)++] = device;
      }
    });
  };
  CreateEp = [](OrtEpFactory* factory, const OrtHardwareDevice* const*,
                const OrtKeyValuePairs* const*, size_t, const OrtSessionOptions* options,
                const OrtLogger* logger, OrtEp** ep) noexcept {
    return guarded(self(factory).api_, [&] { *ep = self(factory).provider(*options, *logger); });
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

std::vector<OrtEpDevice*> CpuFactory::devices(
    const std::vector<const OrtHardwareDevice*>& machine) {
  std::vector<OrtEpDevice*> result;
  for (const OrtHardwareDevice* device : machine) {
    if (api_.ort->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU) {
      result.push_back(device_for(*device));
    }
  }
  return result;
}

Provider* CpuFactory::provider(const OrtSessionOptions& options, const OrtLogger& logger) {
  return new CpuProvider(api_, name_, read_options(api_, name_, options), logger);
}

}  // namespace redfuser::ep
