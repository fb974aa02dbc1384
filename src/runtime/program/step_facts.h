// What computes the steps of a program, from what kernel selection answered.
#pragma once

#include <vector>

#include "codegen/core/gpu_step.h"
#include "redfuser/redfuser.h"
#include "select/work.h"

namespace redfuser::runtime {

// Of a device form that computes a step, and of the step's offers at these sizes, the default
// first. Kernels without work are left out. `tuning`: the step's measurements, of which the form is
// the choice; null where there are none.
StepFacts facts_of(const codegen::GpuStep& form, const std::vector<codegen::Offer>& offers,
                   const select::KnownSizes& sizes, const StepTuning* tuning = nullptr);

}  // namespace redfuser::runtime
