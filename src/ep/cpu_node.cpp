#include "ep/cpu_node.h"

#include <cstring>

#include "ep/ort_graph.h"
#include "ep/value_types.h"

namespace redfuser::ep {

NamedTensors CpuNode::tensors_of(const OrtKernelContext& context) const {
  NamedTensors inputs;
  for (const size_t i : used_) {
    const OrtValue& value = input(context, i);
    TensorType type = tensor_type(api_, value);
    const auto* data = answer<const void*>(api_, &OrtApi::GetTensorData, &value);
    inputs[inputs_[i]] = Tensor::wrap(type.dtype, std::move(type.dims), data, nullptr);
  }
  return inputs;
}

Tensor CpuNode::memory_of(OrtKernelContext& context, size_t index, const Dims& dims) const {
  OrtValue* value = output(context, index, dims);
  if (value == nullptr) return {};
  auto* data = answer<void*>(api_, &OrtApi::GetTensorMutableData, value);
  return Tensor::wrap(tensor_type(api_, *value).dtype, dims, data, nullptr);
}

void CpuNode::run_in_place(Session& session, const NamedTensors& inputs, const NamedDims& dims,
                           OrtKernelContext& context) const {
  NamedTensors outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Tensor memory = memory_of(context, i, dims.at(outputs_[i]));
    if (memory.defined()) outputs[outputs_[i]] = std::move(memory);
  }
  session.run(inputs, outputs);
}

void CpuNode::run_and_copy(Session& session, const NamedTensors& inputs,
                           OrtKernelContext& context) const {
  const NamedTensors results = session.run(inputs);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Tensor& result = results.at(outputs_[i]);
    Tensor memory = memory_of(context, i, result.dims());
    if (memory.bytes() > 0) std::memcpy(memory.mutable_data(), result.data(), memory.bytes());
  }
}

void CpuNode::run(OrtKernelContext& context) {
  const NamedTensors inputs = tensors_of(context);
  NamedDims sizes;
  for (const auto& [name, tensor] : inputs) sizes[name] = tensor.dims();
  sessions_.with_session([&](Session& session) {
    const std::optional<NamedDims> dims = known_dims(session, sizes);
    if (dims) return run_in_place(session, inputs, *dims, context);
    run_and_copy(session, inputs, context);
  });
}

}  // namespace redfuser::ep
