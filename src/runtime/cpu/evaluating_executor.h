// Runs a model whose structure depends on a run.
#pragma once

#include <memory>

#include "runtime/program/executor.h"

namespace redfuser::runtime {

// On the CPU, for programs without a plan (LoadedModel::needs_values) and runs that the plan does
// not serve: by a plan for the sizes of the run, or node by node.
std::unique_ptr<Executor> make_evaluating_executor(std::shared_ptr<const CompiledProgram> program,
                                                   const SessionOptions& options);

}  // namespace redfuser::runtime
