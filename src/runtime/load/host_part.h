// The part of a plan that a GPU program leaves to the CPU.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/gpu_step.h"
#include "runtime/program/compiled_program.h"

namespace redfuser::runtime {

class HostPart {
 public:
  // The values that are in host memory alone, and the steps that read or write one. Such values are
  // strings, lists, those whose sizes are known in the run only, and aliases of them. Control flow
  // that a run decides is the CPU's as well. A step that can find the size of its results on a GPU
  // is not, unless another step of the program needs the size.
  explicit HostPart(const CompiledProgram& program);

  // Whether the CPU computes the step.
  bool has(size_t step) const { return steps_[step]; }
  // Whether the value is in host memory alone.
  bool keeps(ir::ValueId value) const { return values_[static_cast<size_t>(value)]; }
  bool empty() const;
  // Whether kernels of the step find the size of its results.
  bool finds(size_t step) const { return finds_[step]; }
  // Leaves a step to the CPU, for a reason that names its node.
  void take(size_t step, const std::string& reason);
  // Whether a size in the calls depends on data.
  bool binds_sizes_of(const codegen::GpuStep& form) const;
  // Why the CPU computes the step; empty where it does not, and for an alias.
  const std::string& reason(size_t step) const { return reasons_[step]; }
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  bool is_known(const std::vector<int64_t>& symbols) const;
  bool finds_size(size_t step) const;
  bool may_find(size_t step) const;
  std::string reason_of(ir::ValueId value) const;

  const CompiledProgram& program_;
  std::vector<bool> known_;   // by symbol: part of an input's sizes, or outer
  std::vector<bool> values_;  // by ValueId
  std::vector<bool> steps_;
  std::vector<bool> finds_;           // by step
  std::vector<std::string> reasons_;  // by step
};

// How many steps the CPU computes for each of these reasons, a line for each of the first ones;
// empty reasons are none.
std::vector<std::string> host_notes(const std::vector<std::string>& reasons);

}  // namespace redfuser::runtime
