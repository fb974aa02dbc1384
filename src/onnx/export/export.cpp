#include "onnx/export/export.h"

#include <onnx/inliner/inliner.h>
#include <onnx/onnx_pb.h>

#include <algorithm>

#include "base/error.h"
#include "onnx/export/emit_function.h"
#include "onnx/export/emit_standard.h"
#include "onnx/export/function_nodes.h"
#include "onnx/export/normalise.h"
#include "onnx/export/pruned_model.h"
#include "onnx/proto/external_data.h"
#include "onnx/proto/tensor_proto.h"

namespace redfuser::onnx {

namespace {

// Replaces every call of a local function by the function's body.
void inline_functions(OutputModel& model, const std::string& path) {
  // The inliner avoids names of initializers only if they are in the graph.
  ::onnx::GraphProto& graph = *model.proto.mutable_graph();
  for (const auto& [name, tensor] : model.initializers) graph.add_initializer()->set_name(name);
  try {
    ::onnx::inliner::InlineLocalFunctions(model.proto, true);
  } catch (const std::exception& error) {
    user_error("{}: cannot be written: its functions cannot be inlined: {}", path, error.what());
  }
  graph.clear_initializer();
  if (model.proto.functions_size() != 0) {
    user_error("{}: cannot be written: the function {} is for an opset that cannot be inlined",
               path, model.proto.functions(0).name());
  }
}

OutputModel emit(const LoadedModel& model, const ir::Graph& graph,
                 const std::vector<ExportRegion>& wanted, EmitMode mode, const std::string& path,
                 ExportResult& result) {
  std::vector<ExportRegion> regions = wanted;
  const FunctionNodes nodes(*model.proto);
  for (ExportRegion& region : regions) {
    std::erase_if(region.sources,
                  [&](int source) { return !nodes.may_have(model.proto->graph().node(source)); });
  }
  std::erase_if(regions, [](const ExportRegion& region) { return region.sources.empty(); });
  result.operators_before = model.operator_counts;
  OutputModel output;
  switch (mode) {
    case EmitMode::Function:
      output = emit_function(model, prune(model, graph), regions, result);
      break;
    case EmitMode::Inline:
      output = emit_function(model, prune(model, graph), {}, result);
      inline_functions(output, path);
      break;
    case EmitMode::Standard:
      output = emit_standard(model, graph);
      break;
  }
  result.operators_after = operator_counts(output.proto);
  return output;
}

// The file's own nodes; without its functions where the mode has none.
OutputModel as_it_is(const LoadedModel& model, EmitMode mode, const std::string& path,
                     ExportResult& result) {
  result.operators_before = result.operators_after = model.operator_counts;
  OutputModel output;
  output.checked = false;
  output.proto = *model.proto;
  ::onnx::GraphProto& graph = *output.proto.mutable_graph();
  ExternalData external(model.path);
  for (const auto& tensor : model.proto->graph().initializer()) {
    output.initializers.emplace_back(tensor.name(),
                                     to_tensor(tensor, model.proto, &external, model.path));
  }
  graph.clear_initializer();
  normalise(output.proto, model.path);
  if (mode != EmitMode::Function && output.proto.functions_size() != 0) {
    inline_functions(output, path);
    result.operators_after = operator_counts(output.proto);
  }
  return output;
}

}  // namespace

ExportResult save_model(const LoadedModel& model, const ir::Graph& graph,
                        const std::vector<ExportRegion>& regions, const ExportOptions& options,
                        const std::string& path) {
  ExportResult result;
  OutputModel output = emit(model, graph, regions, options.emit, path, result);
  write_model(std::move(output), options.external_threshold, path);
  return result;
}

ExportResult serialise_model(const LoadedModel& model, const ir::Graph& graph,
                             const std::vector<ExportRegion>& regions, EmitMode mode,
                             const std::string& name, std::string& bytes) {
  ExportResult result;
  bytes = model_bytes(emit(model, graph, regions, mode, name, result), name);
  return result;
}

ExportResult copy_model(const LoadedModel& model, const ExportOptions& options,
                        const std::string& path) {
  ExportResult result;
  write_model(as_it_is(model, options.emit, path, result), options.external_threshold, path);
  return result;
}

ExportResult copy_model(const LoadedModel& model, EmitMode mode, const std::string& name,
                        std::string& bytes) {
  ExportResult result;
  bytes = model_bytes(as_it_is(model, mode, name, result), name);
  return result;
}

std::shared_ptr<const LoadedModel> with_graph(const LoadedModel& model, const ir::Graph& graph) {
  OutputModel output = emit_standard(model, graph);
  output.proto.set_producer_name(model.proto->producer_name());
  output.proto.set_producer_version(model.proto->producer_version());
  auto proto = std::make_shared<::onnx::ModelProto>(std::move(output.proto));
  for (const auto& [name, tensor] : output.initializers) {
    *proto->mutable_graph()->add_initializer() = to_proto(name, tensor);
  }
  return import_model(std::move(proto), model.path);
}

}  // namespace redfuser::onnx
