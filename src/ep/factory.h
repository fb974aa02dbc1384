// The factory of providers that ONNX Runtime asks for devices and makes sessions' providers with.
#pragma once

#include "ep/api.h"

namespace redfuser::ep {

// Offers the machine's CPU. Sessions get a Provider each, whose tensors are in the memory of ONNX
// Runtime's own CPU allocator.
class Factory final : public OrtEpFactory {
 public:
  explicit Factory(const Api& api);

 private:
  static Factory& self(OrtEpFactory* factory) { return *static_cast<Factory*>(factory); }
  OrtEpDevice* device_for(const OrtHardwareDevice& hardware);

  const Api api_;
};

}  // namespace redfuser::ep
