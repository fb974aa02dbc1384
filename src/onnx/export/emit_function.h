// The file's own nodes, with regions as calls of model-local functions.
#pragma once

#include <vector>

#include "onnx/export/export.h"
#include "onnx/export/output_model.h"
#include "onnx/export/pruned_model.h"

namespace redfuser::onnx {

// The pruned file with regions as functions, which `result` lists; plain nodes without regions.
OutputModel emit_function(const LoadedModel& model, const PrunedModel& pruned,
                          const std::vector<ExportRegion>& regions, ExportResult& result);

}  // namespace redfuser::onnx
