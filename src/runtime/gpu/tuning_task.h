// What tuning measures: a step at given sizes, by one of its choices.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/kernel_config.h"
#include "runtime/gpu/program.h"

namespace redfuser::runtime {

struct TuningTask {
  size_t step = 0;
  std::vector<codegen::KernelConfig> choices;  // the default first
  // The step without a choice, as text: equal tasks are measured once. Sizes of run time are
  // rounded up to a quarter of a power of two, so that a length that grows is not measured at every
  // step.
  std::string text;
};

// Of every step with something to choose; `sizes` are those of symbols.
std::vector<TuningTask> tuning_tasks(const GpuProgram& program, const std::vector<int64_t>& sizes);

}  // namespace redfuser::runtime
