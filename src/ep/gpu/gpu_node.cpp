#include "ep/gpu/gpu_node.h"

#include "ep/gpu/gpu_copies.h"
#include "ep/ort_graph.h"
#include "ep/value_types.h"

namespace redfuser::ep {
namespace {

DeviceTensor tensor_of(const Api& api, const OrtValue& value) {
  TensorType type = tensor_type(api, value);
  DeviceTensor tensor;
  tensor.dtype = type.dtype;
  tensor.dims = std::move(type.dims);
  tensor.data = const_cast<void*>(answer<const void*>(api, &OrtApi::GetTensorData, &value));
  tensor.on_host = !is_of_gpu(api, value);
  return tensor;
}

}  // namespace

NamedDeviceTensors GpuNode::tensors_of(const OrtKernelContext& context) const {
  NamedDeviceTensors inputs;
  for (const size_t i : used_) inputs[inputs_[i]] = tensor_of(api_, input(context, i));
  return inputs;
}

NamedDeviceTensors GpuNode::memory_of(OrtKernelContext& context, const NamedDims& dims) const {
  NamedDeviceTensors outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const OrtValue* value = output(context, i, dims.at(outputs_[i]));
    if (value != nullptr) outputs[outputs_[i]] = tensor_of(api_, *value);
  }
  return outputs;
}

void GpuNode::copy_out(const NamedDeviceTensors& results, OrtKernelContext& context,
                       cuda::StreamHandle stream) const {
  const cuda::Stream on(gpu_.device(), stream);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const DeviceTensor& result = results.at(outputs_[i]);
    const OrtValue* value = output(context, i, result.dims);
    if (value == nullptr) continue;
    const auto bytes =
        static_cast<int64_t>(answer<size_t>(api_, &OrtApi::GetTensorSizeInBytes, value));
    const auto target = reinterpret_cast<uint64_t>(tensor_of(api_, *value).data);
    if (result.on_host) {
      on.to_device(target, result.data, bytes);
      on.synchronize();  // the next run writes the memory that is read
    } else {
      on.copy(target, reinterpret_cast<uint64_t>(result.data), bytes);
    }
  }
}

void GpuNode::enqueue(Session& session, const NamedDeviceTensors& inputs, OrtKernelContext& context,
                      cuda::StreamHandle stream) const {
  NamedDims sizes;
  for (const auto& [name, tensor] : inputs) sizes[name] = tensor.dims;
  if (const std::optional<NamedDims> dims = known_dims(session, sizes)) {
    session.enqueue(inputs, memory_of(context, *dims), stream);
  } else {
    copy_out(session.enqueue(inputs, {}, stream), context, stream);
  }
}

// The session's own stream waits for the run, and the next run for it, since runs of a session may
// not overlap and the next one may be on another stream.
void GpuNode::run(OrtKernelContext& context) {
  const NamedDeviceTensors inputs = tensors_of(context);
  auto* const given = answer<void*>(api_, &OrtApi::KernelContext_GetGPUComputeStream, &context);
  sessions_.with_session([&](Session& session) {
    gpu_.device();
    void* const stream = given != nullptr ? given : session.stream();
    session.order(nullptr, stream);
    enqueue(session, inputs, context, stream);
    session.order(stream, nullptr);
    if (given == nullptr) session.synchronize();
  });
}

}  // namespace redfuser::ep
