// The nodes of a graph as an ONNX file.
#pragma once

#include "onnx/export/export.h"
#include "onnx/export/output_model.h"

namespace redfuser::onnx {

// The nodes of `graph`, whose inputs and outputs are those of `model`.
OutputModel emit_standard(const LoadedModel& model, const ir::Graph& graph);

}  // namespace redfuser::onnx
