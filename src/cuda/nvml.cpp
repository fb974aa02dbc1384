#include "cuda/nvml.h"

#include <optional>

#include "base/error.h"
#include "cuda/library.h"

namespace redfuser::cuda {
namespace {

// Names and values of NVIDIA's NVML API reference.
using Result = int;          // nvmlReturn_t
using DeviceHandle = void*;  // nvmlDevice_t
constexpr Result kSuccess = 0;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kTemperatureGpu = 0;

struct Api {
  Result (*nvmlInit_v2)();
  Result (*nvmlDeviceGetHandleByPciBusId_v2)(const char*, DeviceHandle*);
  Result (*nvmlDeviceGetClockInfo)(DeviceHandle, int, unsigned*);
  Result (*nvmlDeviceGetTemperature)(DeviceHandle, int, unsigned*);
  Result (*nvmlDeviceGetPowerUsage)(DeviceHandle, unsigned*);
};

std::optional<Api> load() {
  try {
    const Library library({"NVML", {"libnvidia-ml.so.1"}});
    Api api;
#define RF_BIND(name) library.bind(api.name, #name)
    RF_BIND(nvmlInit_v2);
    RF_BIND(nvmlDeviceGetHandleByPciBusId_v2);
    RF_BIND(nvmlDeviceGetClockInfo);
    RF_BIND(nvmlDeviceGetTemperature);
    RF_BIND(nvmlDeviceGetPowerUsage);
#undef RF_BIND
    return api.nvmlInit_v2() == kSuccess ? std::optional(api) : std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

Clocks read_clocks(const std::string& pci_bus) {
  static const std::optional<Api> api = load();
  Clocks clocks;
  if (!api) {
    clocks.problem = "NVML (libnvidia-ml.so.1) is not there or does not start";
    return clocks;
  }
  DeviceHandle device = nullptr;
  if (api->nvmlDeviceGetHandleByPciBusId_v2(pci_bus.c_str(), &device) != kSuccess) {
    clocks.problem = fmt::format("NVML does not show the GPU at {}", pci_bus);
    return clocks;
  }
  const auto read = [&](auto function, auto... which) {
    unsigned value = 0;
    return function(device, which..., &value) == kSuccess ? static_cast<int>(value) : 0;
  };
  clocks.sm_mhz = read(api->nvmlDeviceGetClockInfo, kClockSm);
  clocks.memory_mhz = read(api->nvmlDeviceGetClockInfo, kClockMemory);
  clocks.temperature_c = read(api->nvmlDeviceGetTemperature, kTemperatureGpu);
  clocks.power_w = read(api->nvmlDeviceGetPowerUsage) / 1e3;
  return clocks;
}

}  // namespace redfuser::cuda
