// The inputs of a run: read from files, or made up.
#pragma once

#include "run_options.h"

namespace redfuser::tools {

// Files in order, later ones adding to earlier ones; random tensors if there are no files.
// UserError for an input given twice.
NamedTensors gather_inputs(const Model& model, const RunOptions& options);

// Writes the outputs where --outputs says.
void write_outputs(const Model& model, const std::string& path, const NamedTensors& outputs);

}  // namespace redfuser::tools
