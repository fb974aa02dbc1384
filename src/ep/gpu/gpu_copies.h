// Copies between the memory of the host and that of the GPU.
#pragma once

#include <onnxruntime_c_api.h>

#include "ep/gpu/gpu.h"

namespace redfuser::ep {

// NVIDIA's number on the PCI bus.
inline constexpr uint32_t kNvidia = 0x10DE;

// Whether memory of the device is the GPU's; other memory is the host's.
bool is_of_gpu(const Api& api, const OrtMemoryDevice* device);
bool is_of_gpu(const Api& api, const OrtValue& value);

// Copies a tensor to another of as many bytes. On `stream`, where host memory that is written is
// ready at the return, and host memory that is read may change. Null: after all work of the GPU,
// and both are ready.
void copy_tensor(Gpu& gpu, const OrtValue& from, OrtValue& to, cuda::StreamHandle stream);

// Between tensors in host and GPU memory, as ONNX Runtime asks for it around runs. `gpu` must
// outlive it.
class GpuCopies final : public OrtDataTransferImpl {
 public:
  explicit GpuCopies(Gpu& gpu);

 private:
  static GpuCopies& self(OrtDataTransferImpl* own) { return *static_cast<GpuCopies*>(own); }

  Gpu& gpu_;
};

// The kernels MemcpyFromHost and MemcpyToHost, by which ONNX Runtime brings values to the provider
// and to others. `gpu` must outlive them, and they the sessions.
class CopyKernels {
 public:
  explicit CopyKernels(Gpu& gpu);
  const OrtKernelRegistry* registry() const { return registry_.get(); }

 private:
  Released<OrtKernelRegistry> registry_;
};

}  // namespace redfuser::ep
