#include "ep/compiled_node.h"

#include <cstring>
#include <optional>
#include <set>

#include "base/error.h"
#include "ep/ort_graph.h"
#include "ep/value_types.h"

namespace redfuser::ep {
namespace {

// The sizes of the outputs, where inputs alone decide them. A run reports faults of the inputs.
std::optional<NamedDims> known_dims(const Session& session, const NamedDims& inputs) {
  try {
    return session.output_dims(inputs);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

CompiledNode::CompiledNode(const Api& api, const Model& model, Program program,
                           const SessionOptions& options, std::vector<std::string> inputs,
                           std::vector<std::string> outputs)
    : OrtNodeComputeInfo{},
      api_(api),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      sessions_(std::move(program), options) {
  std::set<std::string> wanted;
  for (const ValueInfo& input : model.inputs()) wanted.insert(input.name);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (wanted.erase(inputs_[i]) > 0) used_.push_back(i);
  }
  RF_CHECK(wanted.empty(), "ONNX Runtime does not give \"{}\" to the fused node", *wanted.begin());
  ort_version_supported = api.version;
  CreateState = [](OrtNodeComputeInfo* node, OrtNodeComputeContext*,
                   void** state) noexcept -> OrtStatus* {
    *state = node;
    return nullptr;
  };
  Compute = [](OrtNodeComputeInfo* info, void*, OrtKernelContext* context) noexcept {
    auto& node = *static_cast<CompiledNode*>(info);
    return guarded(node.api_, [&] { node.run(*context); });
  };
  ReleaseState = [](OrtNodeComputeInfo*, void*) noexcept {};
}

NamedTensors CompiledNode::inputs_of(const OrtKernelContext& context) const {
  NamedTensors inputs;
  for (const size_t i : used_) {
    const auto* value = answer<const OrtValue*>(api_, &OrtApi::KernelContext_GetInput, &context, i);
    if (value == nullptr) user_error("input \"{}\" is missing", inputs_[i]);
    TensorType type = tensor_type(api_, *value);
    const auto* data = answer<const void*>(api_, &OrtApi::GetTensorData, value);
    inputs[inputs_[i]] = Tensor::wrap(type.dtype, std::move(type.dims), data, nullptr);
  }
  return inputs;
}

Tensor CompiledNode::output(OrtKernelContext& context, size_t index, const Dims& dims) const {
  auto* value = answer<OrtValue*>(api_, &OrtApi::KernelContext_GetOutput, &context, index,
                                  dims.data(), dims.size());
  if (value == nullptr) return {};
  auto* data = answer<void*>(api_, &OrtApi::GetTensorMutableData, value);
  return Tensor::wrap(tensor_type(api_, *value).dtype, dims, data, nullptr);
}

void CompiledNode::run_in_place(Session& session, const NamedTensors& inputs, const NamedDims& dims,
                                OrtKernelContext& context) const {
  NamedTensors outputs;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Tensor memory = output(context, i, dims.at(outputs_[i]));
    if (memory.defined()) outputs[outputs_[i]] = std::move(memory);
  }
  session.run(inputs, outputs);
}

void CompiledNode::run_and_copy(Session& session, const NamedTensors& inputs,
                                OrtKernelContext& context) const {
  const NamedTensors results = session.run(inputs);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Tensor& result = results.at(outputs_[i]);
    Tensor memory = output(context, i, result.dims());
    if (memory.bytes() > 0) std::memcpy(memory.mutable_data(), result.data(), memory.bytes());
  }
}

void CompiledNode::run(OrtKernelContext& context) {
  const NamedTensors inputs = inputs_of(context);
  NamedDims sizes;
  for (const auto& [name, tensor] : inputs) sizes[name] = tensor.dims();
  sessions_.with_session([&](Session& session) {
    const std::optional<NamedDims> dims = known_dims(session, sizes);
    if (dims) return run_in_place(session, inputs, *dims, context);
    run_and_copy(session, inputs, context);
  });
}

}  // namespace redfuser::ep
