// Runs a graph on the reference.
#pragma once

#include <memory>

#include "runtime/program/executor.h"

namespace redfuser::runtime {

// On src/reference, for any program: the imported graph node by node, each computed in double
// precision and rounded to its type. It runs no steps: `on_value` is not called.
std::unique_ptr<Executor> make_reference_executor(std::shared_ptr<const CompiledProgram> program,
                                                  const SessionOptions& options);

}  // namespace redfuser::runtime
