#include "ep/compiled_node.h"

#include <set>

#include "base/error.h"
#include "ep/ort_graph.h"

namespace redfuser::ep {

CompiledNode::CompiledNode(NodeParts parts)
    : OrtNodeComputeInfo{},
      api_(parts.api),
      inputs_(std::move(parts.inputs)),
      outputs_(std::move(parts.outputs)),
      sessions_(std::move(parts.program), std::move(parts.options)) {
  std::set<std::string> wanted;
  for (const ValueInfo& input : parts.model.inputs()) wanted.insert(input.name);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (wanted.erase(inputs_[i]) > 0) used_.push_back(i);
  }
  RF_CHECK(wanted.empty(), "ONNX Runtime does not give \"{}\" to the fused node", *wanted.begin());
  ort_version_supported = api_.version;
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

const OrtValue& CompiledNode::input(const OrtKernelContext& context, size_t index) const {
  const auto* value =
      answer<const OrtValue*>(api_, &OrtApi::KernelContext_GetInput, &context, index);
  if (value == nullptr) user_error("input \"{}\" is missing", inputs_[index]);
  return *value;
}

OrtValue* CompiledNode::output(OrtKernelContext& context, size_t index, const Dims& dims) const {
  return answer<OrtValue*>(api_, &OrtApi::KernelContext_GetOutput, &context, index, dims.data(),
                           dims.size());
}

std::optional<NamedDims> CompiledNode::known_dims(const Session& session, const NamedDims& inputs) {
  try {
    return session.output_dims(inputs);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace redfuser::ep
