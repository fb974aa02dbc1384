#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "onnx/export/export.h"
#include "passes/pipeline.h"
#include "redfuser/export.h"
#include "runtime/program/compiled_program.h"

namespace redfuser {
namespace {

onnx::EmitMode mode_of(Emit emit) {
  switch (emit) {
    case Emit::Function:
      return onnx::EmitMode::Function;
    case Emit::Inline:
      return onnx::EmitMode::Inline;
    case Emit::Standard:
      return onnx::EmitMode::Standard;
  }
  internal_error("no such form of output: {}", static_cast<int>(emit));
}

std::vector<onnx::ExportRegion> regions_of(const cascade::Report& report) {
  std::vector<onnx::ExportRegion> regions;
  for (const cascade::FusedReport& fused : report.fused) {
    onnx::ExportRegion region;
    region.region_class = fused.region_class;
    region.name = fmt::format("{}_{}", fused.region_class, fused.id);
    std::copy_if(fused.sources.begin(), fused.sources.end(), std::back_inserter(region.sources),
                 [](int source) { return source >= 0; });
    if (!region.sources.empty()) regions.push_back(std::move(region));
  }
  return regions;
}

// Calls write(graph, regions) with the optimised graph and its fused regions; copy() for a model
// that has no graph for every run.
template <typename Write, typename Copy>
SaveResult with_regions(const Model& model, const Program* program, const Write& write,
                        const Copy& copy) {
  RF_CHECK(model.handle() != nullptr, "save: the model is empty");
  if (model.handle()->weights != nullptr) {
    user_error("{}: a model with weights or inputs of the caller cannot be written",
               model.handle()->path);
  }
  const std::string reason = model.handle()->run_time_structure();
  onnx::ExportResult written;
  if (!reason.empty()) {
    written = copy();
  } else if (program != nullptr) {
    const runtime::CompiledProgram& compiled = *program->handle();
    RF_CHECK(compiled.model == model.handle(), "save: the program is of another model");
    written = write(compiled.graph(), regions_of(compiled.plan.report));
  } else {
    ir::Graph graph = clone(model.handle()->graph);
    passes::optimize(graph);
    written = write(graph, std::vector<onnx::ExportRegion>());
  }
  return {written.operators_before, written.operators_after, written.notes, reason};
}

}  // namespace

SaveResult save(const Model& model, const Program* program, const SaveOptions& options,
                const std::string& path) {
  onnx::ExportOptions export_options;
  export_options.emit = mode_of(options.emit);
  export_options.external_threshold = options.external_data_threshold;
  return with_regions(
      model, program,
      [&](const ir::Graph& graph, const auto& regions) {
        return save_model(*model.handle(), graph, regions, export_options, path);
      },
      [&] { return copy_model(*model.handle(), export_options, path); });
}

SaveResult save_to_bytes(const Model& model, const Program* program, Emit emit,
                         std::string& bytes) {
  const std::string name = "the optimised model";
  return with_regions(
      model, program,
      [&](const ir::Graph& graph, const auto& regions) {
        return serialise_model(*model.handle(), graph, regions, mode_of(emit), name, bytes);
      },
      [&] { return copy_model(*model.handle(), mode_of(emit), name, bytes); });
}

}  // namespace redfuser
