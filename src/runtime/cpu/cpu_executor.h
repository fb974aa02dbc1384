// Runs a plan on the CPU, step by step.
#pragma once

#include <memory>

#include "runtime/program/executor.h"

namespace redfuser::runtime {

std::unique_ptr<Executor> make_cpu_executor(std::shared_ptr<const CompiledProgram> program,
                                            const SessionOptions& options);

// The bytes that a session on the CPU may use: those of the options, else the machine's memory.
int64_t cpu_memory_limit(const SessionOptions& options);

}  // namespace redfuser::runtime
