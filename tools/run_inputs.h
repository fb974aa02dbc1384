// The inputs of a run: read from files, or made up.
#pragma once

#include "run_options.h"

namespace redfuser::tools {

// Files in order, later ones adding to earlier ones; random tensors if there are no files. Files
// may have some of Model::overridable too. UserError for an input given twice.
NamedTensors gather_inputs(const Model& model, const RunOptions& options);

// The model whose inputs are those of `inputs` that it is able to take (Model::with_inputs).
Model model_for(const Model& model, const NamedTensors& inputs);
// The model that a session on a GPU runs on them (Model::deciding_inputs).
Model model_of_values(const Model& model, const NamedTensors& inputs);

// For an error of a run on random inputs: which symbolic sizes were taken as 1 because none were
// given, and how to give them. Empty where there are none.
std::string assumed_sizes(const Model& model, const RunOptions& options);

// Writes the outputs where --outputs says.
void write_outputs(const Model& model, const std::string& path, const NamedTensors& outputs);

}  // namespace redfuser::tools
