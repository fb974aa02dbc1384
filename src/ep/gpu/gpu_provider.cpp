#include "ep/gpu/gpu_provider.h"

#include "ep/gpu/gpu_node.h"
#include "ep/gpu/gpu_stream.h"

namespace redfuser::ep {

GpuProvider::GpuProvider(Gpu& gpu, GpuMemory& memory, const CopyKernels& kernels,
                         ProviderOptions options, const OrtLogger& logger)
    : Provider(gpu.api(), kGpuProviderName, std::move(options), logger),
      gpu_(gpu),
      memory_(memory),
      kernels_(kernels) {
  CreateSyncStreamForDevice = [](OrtEp* provider, const OrtMemoryDevice*,
                                 OrtSyncStreamImpl** stream) noexcept {
    GpuProvider& own = self(provider);
    return guarded(own.api_,
                   [&] { *stream = new GpuStream(own.gpu_, own.memory_, own.options_.stream); });
  };
  GetKernelRegistry = [](OrtEp* provider,
                         const OrtKernelRegistry** registry) noexcept -> OrtStatus* {
    *registry = self(provider).kernels_.registry();
    return nullptr;
  };
  Sync = [](OrtEp* provider) noexcept {
    return guarded(self(provider).api_, [&] { self(provider).gpu_.device()->synchronize(); });
  };
}

CompiledNode* GpuProvider::node(NodeParts parts) const {
  return new GpuNode(gpu_, std::move(parts));
}

}  // namespace redfuser::ep
