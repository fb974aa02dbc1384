// The tile program of a streamed cascade.
#pragma once

#include "cpu/steps/cascade/cascade_plan.h"
#include "cpu/steps/cascade/cascade_roles.h"

namespace redfuser::cpu {

// Writes the program of the cascade `s` of a step: states folded over the stream's tiles, or over
// one tile with the whole row, then the outputs. `growing`: null for fixed sizes.
// Returns the stream's scope of columns.
int build_cascade(const StepForm& form, CascadePlan& plan, const SpecializedStreaming& s,
                  CascadeRows kind, GrowingExtents* growing);

}  // namespace redfuser::cpu
