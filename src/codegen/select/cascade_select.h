// Which family computes a cascade, or which division of its region: the least time by estimate.
#pragma once

#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step);
// By one of its choices.
void generate_cascade(StepBuilder& builder, const fuse::CascadeStep& step,
                      const KernelConfig& choice);

// As kernel_configs, for a CascadeStep and the sizes that the builder knows.
std::vector<Candidate> cascade_configs(StepBuilder& builder, const fuse::CascadeStep& step);

}  // namespace redfuser::codegen
