// Runs on a GPU of models whose structure or sizes follow from values of small inputs.
#pragma once

#include <memory>

#include "runtime/program/executor.h"

namespace redfuser::runtime {

// Compiles a program for the values of onnx::deciding_inputs, which are constants of it, and keeps
// those of the last few sets of values. A model with a plan for all values, whose sizes the host
// reads in a run, runs by that plan until the same values come twice in a row, and where its steps
// are watched or its tensors are the caller's. So does a model whose values decide about control
// flow once more sets of values have come than are kept. Without a plan for all values, a run
// throws UserError where the program of its values has none either, and the first run decides what
// the session's device is.
std::unique_ptr<Executor> make_values_executor(std::shared_ptr<const CompiledProgram> program,
                                               const SessionOptions& options);

}  // namespace redfuser::runtime
