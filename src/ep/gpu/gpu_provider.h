// The provider of a session whose tensors are in the GPU's memory.
#pragma once

#include "ep/gpu/gpu_copies.h"
#include "ep/gpu/gpu_memory.h"
#include "ep/provider.h"

namespace redfuser::ep {

// `gpu`, `memory` and `kernels` are the factory's.
class GpuProvider final : public Provider {
 public:
  GpuProvider(Gpu& gpu, GpuMemory& memory, const CopyKernels& kernels, ProviderOptions options,
              const OrtLogger& logger);

 private:
  static GpuProvider& self(OrtEp* provider) { return *static_cast<GpuProvider*>(provider); }
  CompiledNode* node(NodeParts parts) const override;

  Gpu& gpu_;
  GpuMemory& memory_;
  const CopyKernels& kernels_;
};

}  // namespace redfuser::ep
