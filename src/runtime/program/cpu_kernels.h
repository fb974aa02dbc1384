// The CPU kernels of a program's steps.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cpu/step.h"

namespace redfuser::runtime {

// Made when a session on the CPU first asks for them, and shared by all of them. Thread-safe.
class CpuKernels {
 public:
  // One per step; null for an AliasStep. `plan` is the same at every call, and outlives this.
  // Throws UserError for a step that has no kernel.
  const std::vector<std::unique_ptr<cpu::Kernel>>& of(const fuse::Plan& plan) const;

 private:
  mutable std::once_flag made_;
  mutable std::vector<std::unique_ptr<cpu::Kernel>> kernels_;
};

}  // namespace redfuser::runtime
