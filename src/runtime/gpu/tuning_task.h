// A task of the tuner: a step at given sizes, and its choices.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/core/kernel_config.h"
#include "runtime/gpu/bound/program.h"

namespace redfuser::runtime {

struct TuningTask {
  size_t step = 0;
  std::vector<codegen::KernelConfig> choices;  // the default first
  std::map<std::string, double> estimated_us;  // by choice as text; those that have one
  // The step without a choice, as text: equal tasks are measured once. Run-time sizes are rounded
  // up to a quarter of a power of two, so that a growing length is not measured at every run.
  std::string text;
};

// The tasks of every step with several choices; `defaults` are loaded, `sizes` the values of
// symbols.
std::vector<TuningTask> tuning_tasks(const GpuProgram& program, const LoadedSteps& defaults,
                                     const std::vector<int64_t>& sizes);

}  // namespace redfuser::runtime
