// A compiled node whose tensors are in the CPU's memory.
#pragma once

#include "ep/compiled_node.h"

namespace redfuser::ep {

// The session may compute on a GPU: then every run copies the tensors there and back.
class CpuNode final : public CompiledNode {
 public:
  explicit CpuNode(NodeParts parts) : CompiledNode(std::move(parts)) {}

 private:
  void run(OrtKernelContext& context) override;
  NamedTensors tensors_of(const OrtKernelContext& context) const;
  // Undefined where nobody wants the output.
  Tensor memory_of(OrtKernelContext& context, size_t index, const Dims& dims) const;
  void run_in_place(Session& session, const NamedTensors& inputs, const NamedDims& dims,
                    OrtKernelContext& context) const;
  void run_and_copy(Session& session, const NamedTensors& inputs, OrtKernelContext& context) const;
};

}  // namespace redfuser::ep
