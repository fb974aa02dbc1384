// A region as the steps of a division of it.
#pragma once

#include <vector>

#include "codegen/core/step_builder.h"
#include "fuse/alternatives.h"

namespace redfuser::codegen {

// Adds the calls of the division's steps, each by its own default family. Values that the region
// neither reads nor writes lie in scratch buffers of the step. Adds the steps' times.
void add_division(StepBuilder& builder, const fuse::Alternative& division);
// The same with the forms of the steps, one for each.
void add_division(StepBuilder& builder, const fuse::Alternative& division,
                  std::vector<GpuStep> forms);

}  // namespace redfuser::codegen
