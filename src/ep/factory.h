// The factories of providers that ONNX Runtime asks for devices and makes sessions' providers with.
#pragma once

#include <vector>

#include "ep/provider.h"

namespace redfuser::ep {

// A factory of the providers of one name.
class Factory : public OrtEpFactory {
 public:
  virtual ~Factory() = default;

 protected:
  Factory(const Api& api, const char* name);

  static Factory& self(OrtEpFactory* factory) { return *static_cast<Factory*>(factory); }
  OrtEpDevice* device_for(const OrtHardwareDevice& hardware);

  const Api api_;
  const char* const name_;

 private:
  // The devices, of those of the machine, that sessions can have providers for. ONNX Runtime owns
  // them.
  virtual std::vector<OrtEpDevice*> devices(
      const std::vector<const OrtHardwareDevice*>& machine) = 0;
  virtual Provider* provider(const OrtSessionOptions& options, const OrtLogger& logger) = 0;
};

// Offers the machine's CPU. Sessions get a provider each, whose tensors are in the memory of ONNX
// Runtime's own CPU allocator.
class CpuFactory final : public Factory {
 public:
  explicit CpuFactory(const Api& api) : Factory(api, kProviderName) {}

 private:
  std::vector<OrtEpDevice*> devices(const std::vector<const OrtHardwareDevice*>& machine) override;
  Provider* provider(const OrtSessionOptions& options, const OrtLogger& logger) override;
};

}  // namespace redfuser::ep
