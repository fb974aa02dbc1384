// NVML, the driver's library of a GPU's state, opened at run time. It comes with the driver, but
// not with every container.
#pragma once

#include <string>

namespace redfuser::cuda {

// 0: not known.
struct Clocks {
  int sm_mhz = 0, memory_mhz = 0, temperature_c = 0;
  double power_w = 0;
  std::string problem;  // why nothing is known; else empty
};

// Of the GPU at this bus address (DeviceInfo::pci_bus), now.
Clocks read_clocks(const std::string& pci_bus);

}  // namespace redfuser::cuda
