// The factory of providers whose tensors are in the GPU's memory.
#pragma once

#include "ep/factory.h"
#include "ep/gpu/gpu_copies.h"
#include "ep/gpu/gpu_memory.h"

namespace redfuser::ep {

// Offers the first visible GPU where there is one, with its memory, copies and streams: the device
// of the machine that ONNX Runtime has found, or one that it is told of.
class GpuFactory final : public Factory {
 public:
  // For an interface of kOldestGpuVersion or newer.
  explicit GpuFactory(const Api& api);

 private:
  static GpuFactory& self(OrtEpFactory* factory) { return *static_cast<GpuFactory*>(factory); }
  std::vector<OrtEpDevice*> devices(const std::vector<const OrtHardwareDevice*>& machine) override;
  const OrtHardwareDevice& hardware(const std::vector<const OrtHardwareDevice*>& machine);
  Provider* provider(const OrtSessionOptions& options, const OrtLogger& logger) override;

  Gpu gpu_;
  GpuMemory memory_;
  CopyKernels kernels_;
  Released<OrtMemoryInfo> info_;
  Released<OrtHardwareDevice> told_;  // the device that ONNX Runtime has not found
};

}  // namespace redfuser::ep
