// The CPU kernels of a program's steps.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "cpu/step.h"

namespace redfuser::runtime {

// Made by the first session on the CPU and shared by all later ones. Thread-safe.
class CpuKernels {
 public:
  // One per step; null for an AliasStep and for a call (onnx::call_number). `plan` must be the same
  // at every call and outlive this. Throws UserError for a step without a kernel.
  const std::vector<std::unique_ptr<cpu::Kernel>>& of(const fuse::Plan& plan) const;

 private:
  mutable std::once_flag made_;
  mutable std::vector<std::unique_ptr<cpu::Kernel>> kernels_;
};

}  // namespace redfuser::runtime
