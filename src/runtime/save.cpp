#include <algorithm>

#include "base/error.h"
#include "onnx/export.h"
#include "passes/pipeline.h"
#include "redfuser/export.h"
#include "runtime/compiled_program.h"

namespace redfuser {
namespace {

EmitMode mode_of(Emit emit) {
  switch (emit) {
    case Emit::Function:
      return EmitMode::Function;
    case Emit::Inline:
      return EmitMode::Inline;
    case Emit::Standard:
      return EmitMode::Standard;
  }
  internal_error("no such form of output: {}", static_cast<int>(emit));
}

// The nodes of the file that a fused step covers.
std::vector<int> sources_of(const Graph& graph, const Step& step) {
  std::vector<int> sources;
  for (const NodeId node : step.nodes) {
    const int source = graph.nodes[static_cast<size_t>(node)].source;
    if (source >= 0) sources.push_back(source);
  }
  std::sort(sources.begin(), sources.end());
  sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
  return sources;
}

std::vector<ExportRegion> regions_of(const CompiledProgram& program) {
  std::vector<ExportRegion> regions;
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (!program.steps[i].fused) continue;
    ExportRegion region;
    region.region_class = program.steps[i].kind;
    region.name = fmt::format("{}_{}", region.region_class, regions.size());
    region.sources = sources_of(program.graph(), program.plan.steps[i]);
    if (!region.sources.empty()) regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace

SaveResult save(const Model& model, const Program* program, const SaveOptions& options,
                const std::string& path) {
  RF_CHECK(model.handle() != nullptr, "save: the model is empty");
  const std::lock_guard lock(pool_mutex());
  ExportOptions export_options;
  export_options.emit = mode_of(options.emit);
  export_options.external_threshold = options.external_data_threshold;
  ExportResult written;
  if (program != nullptr) {
    const CompiledProgram& compiled = *program->handle();
    RF_CHECK(compiled.model == model.handle(), "save: the program is of another model");
    written =
        save_model(*model.handle(), compiled.graph(), regions_of(compiled), export_options, path);
  } else {
    Graph graph = model.handle()->graph;
    optimize(graph);
    written = save_model(*model.handle(), graph, {}, export_options, path);
  }
  return {written.operators_before, written.operators_after, written.notes};
}

}  // namespace redfuser
