// A compiled node whose tensors are in the GPU's memory.
#pragma once

#include "ep/compiled_node.h"
#include "ep/gpu/gpu.h"
#include "redfuser/device.h"

namespace redfuser::ep {

// A run is enqueued on the stream that ONNX Runtime gives, reads its inputs in place and writes
// outputs in place whose sizes the inputs' decide.
class GpuNode final : public CompiledNode {
 public:
  GpuNode(Gpu& gpu, NodeParts parts) : CompiledNode(std::move(parts)), gpu_(gpu) {}

 private:
  void run(OrtKernelContext& context) override;
  NamedDeviceTensors tensors_of(const OrtKernelContext& context) const;
  NamedDeviceTensors memory_of(OrtKernelContext& context, const NamedDims& dims) const;
  void enqueue(Session& session, const NamedDeviceTensors& inputs, OrtKernelContext& context,
               cuda::StreamHandle stream) const;
  void copy_out(const NamedDeviceTensors& results, OrtKernelContext& context,
                cuda::StreamHandle stream) const;

  Gpu& gpu_;
};

}  // namespace redfuser::ep
