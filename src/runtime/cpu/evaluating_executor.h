// Runs a model that has no plan, node by node.
#pragma once

#include <memory>

#include "runtime/program/executor.h"

namespace redfuser::runtime {

// For programs without a plan (LoadedModel::needs_values), on the CPU.
std::unique_ptr<Executor> make_evaluating_executor(std::shared_ptr<const CompiledProgram> program,
                                                   const SessionOptions& options);

}  // namespace redfuser::runtime
