// Sessions on a GPU, and what speaks against them.
#pragma once

#include "runtime/program/executor.h"

namespace redfuser::runtime {

// Throws UserError for a missing GPU or library. So do the functions below but has_gpu.
std::unique_ptr<Executor> make_cuda_executor(std::shared_ptr<const CompiledProgram> program,
                                             const SessionOptions& options);

// Why the CPU computes a step of the program; empty where it computes none.
std::string cpu_reason(const std::shared_ptr<const CompiledProgram>& program,
                       const SessionOptions& options);

// Whether a product, a cascade or a convolution has kernels.
bool has_large_steps(const std::shared_ptr<const CompiledProgram>& program,
                     const SessionOptions& options);

// Whether the CUDA driver has a visible GPU.
bool has_gpu();

}  // namespace redfuser::runtime
