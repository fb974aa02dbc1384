// What computes the steps of a program, from what kernel selection answered.
#pragma once

#include <vector>

#include "codegen/core/gpu_step.h"
#include "redfuser/redfuser.h"
#include "select/work.h"

namespace redfuser::runtime {

// Of a step's offers at the sizes of a run, the default first. `tuning`: the step's measurements,
// of which the form is the choice; null where there are none. Kernels without work are left out.
StepFacts facts_of(const std::vector<select::Offer>& offers, const StepTuning* tuning = nullptr);
// The same, with the kernels that the form launches.
StepFacts facts_of(const codegen::GpuStep& form, const std::vector<select::Offer>& offers,
                   const select::KnownSizes& sizes, const StepTuning* tuning = nullptr);

}  // namespace redfuser::runtime
