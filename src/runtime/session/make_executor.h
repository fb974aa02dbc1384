// The executor of a session.
#pragma once

#include <memory>

#include "runtime/program/executor.h"

namespace redfuser::runtime {

// An executor for the device of the options. Throws UserError if the device is missing or cannot
// run the program.
std::unique_ptr<Executor> make_executor(std::shared_ptr<const CompiledProgram> program,
                                        const SessionOptions& options);

}  // namespace redfuser::runtime
