#include "ep/provider.h"

#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "ep/graph_model.h"
#include "ep/ort_graph.h"
#include "ep/value_types.h"
#include "onnx/functions/functions.h"
#include "redfuser/support.h"

namespace redfuser::ep {
namespace {

// The version that knows a subgraph's node while it asks for claims, and gives the claims of a
// second call other names than those of the first.
constexpr uint32_t kTellsParents = 24;

bool is_type(const Api& api, const OrtValueInfo* value, DType dtype) {
  ::onnx::TypeProto type;
  write_type(api, *value, type);
  return type.tensor_type().elem_type() == static_cast<int>(dtype);
}

bool reads_outer_values(const Api& api, const OrtNode& node) {
  for (const auto& values : {inputs_of(api, node), captured_by(api, node)}) {
    for (const OrtValueInfo* value : values) {
      if (value != nullptr && answer<bool>(api, &OrtApi::ValueInfo_IsFromOuterScope, value)) {
        return true;
      }
    }
  }
  return false;
}

// True for graphs without inputs, as branches are, those with the first inputs and output of a
// Loop's body, and those that read values of an outer graph.
bool looks_like_subgraph(const Api& api, const OrtGraph& graph) {
  const std::vector<const OrtValueInfo*> inputs = inputs_of(api, graph);
  const std::vector<const OrtValueInfo*> outputs = outputs_of(api, graph);
  if (inputs.empty()) return true;
  if (inputs.size() >= 2 && !outputs.empty() && is_type(api, inputs[0], DType::Int64) &&
      is_type(api, inputs[1], DType::Bool) && is_type(api, outputs[0], DType::Bool)) {
    return true;
  }
  const std::vector<const OrtNode*> nodes = nodes_of(api, graph);
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const OrtNode* node) { return reads_outer_values(api, *node); });
}

}  // namespace

Provider::Provider(const Api& api, const char* name, ProviderOptions options,
                   const OrtLogger& logger)
    : OrtEp{}, api_(api), name_(name), options_(std::move(options)), logger_(logger) {
  ort_version_supported = api.version;
  GetName = [](const OrtEp* provider) noexcept {
    return static_cast<const Provider*>(provider)->name_;
  };
  GetCapability = [](OrtEp* provider, const OrtGraph* graph,
                     OrtEpGraphSupportInfo* claims) noexcept {
    return guarded(self(provider).api_, [&] { self(provider).claim(*graph, *claims); });
  };
  Compile = [](OrtEp* provider, const OrtGraph** graphs, const OrtNode** fused, size_t count,
               OrtNodeComputeInfo** nodes, OrtNode** /*context_nodes*/) noexcept {
    return guarded(self(provider).api_, [&] {
      self(provider).has_compiled_ = true;
      std::fill(nodes, nodes + count, nullptr);
      for (size_t i = 0; i < count; ++i) nodes[i] = self(provider).compile(*graphs[i], *fused[i]);
    });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** nodes, size_t count) noexcept {
    for (size_t i = 0; i < count; ++i) delete static_cast<CompiledNode*>(nodes[i]);
  };
}

void Provider::log(OrtLoggingLevel level, const std::string& message) const {
  check(api_, api_.ort->Logger_LogMessage(&logger_, level, message.c_str(), "RedFuser", 0, ""));
}

// ONNX Runtime asks for subgraphs first. Those that the claim of their node takes in stay whole, as
// do those of functions, which ONNX Runtime inlines afterwards.
bool Provider::leaves_whole(const OrtGraph& graph) const {
  if (api_.version < kTellsParents) return has_compiled_ || looks_like_subgraph(api_, graph);
  const OrtNode* parent = parent_of(api_, graph);
  if (parent == nullptr) return false;
  if (!onnx::is_control_flow(answer<const char*>(api_, &OrtApi::Node_GetOperatorType, parent))) {
    return true;
  }
  const GraphModel model = model_of(api_, graph, {parent}, {}, Weights::Borrowed);
  return supported_nodes(model.bytes, model.name, model.weights).reasons.front().empty();
}

void Provider::claim(const OrtGraph& graph, OrtEpGraphSupportInfo& claims) const {
  const std::vector<const OrtNode*> nodes = nodes_of(api_, graph);
  if (nodes.empty() || leaves_whole(graph)) return;
  const GraphModel model =
      model_of(api_, graph, nodes, names_of(api_, outputs_of(api_, graph)), Weights::Borrowed);
  NodeSupport support;
  try {
    support = supported_nodes(model.bytes, model.name, model.weights);
  } catch (const UserError& error) {
    return log(ORT_LOGGING_LEVEL_WARNING, fmt::format("no node is taken: {}", error.what()));
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (support.reasons[i].empty()) continue;
    log(ORT_LOGGING_LEVEL_INFO, fmt::format("left to other providers: {}", support.reasons[i]));
  }
  OrtNodeFusionOptions fusion{};
  fusion.ort_version_supported = api_.version;
  fusion.drop_constant_initializers = true;
  for (const std::vector<int>& set : support.sets) {
    std::vector<const OrtNode*> members;
    for (const int index : set) members.push_back(nodes[static_cast<size_t>(index)]);
    check(api_, api_.ep->EpGraphSupportInfo_AddNodesToFuse(&claims, members.data(), members.size(),
                                                           &fusion));
  }
}

CompiledNode* Provider::compile(const OrtGraph& graph, const OrtNode& fused) const {
  const std::vector<std::string> outputs = names_of(api_, outputs_of(api_, fused));
  const GraphModel written = model_of(api_, graph, nodes_of(api_, graph), outputs, Weights::Owned);
  const Model model = Model::from_bytes(written.bytes, written.name, {.weights = written.weights});
  Program program = redfuser::compile(model, options_.compile);
  return node({api_, model, std::move(program), options_.session,
               names_of(api_, inputs_of(api_, fused)), outputs});
}

}  // namespace redfuser::ep
