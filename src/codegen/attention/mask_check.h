// Exact masks (Target::exact_masks): whether hidden keys and values need no visit, found out on the
// device before the attention kernel runs.
//
// In the unfused graph what a mask hides takes part: 0 · v is NaN where v is not finite, and so is
// s + -inf where s is +inf or NaN. A kernel reads all that takes part so, once, and bounds the
// scores by the largest magnitudes (cascade/masked_operands.h). Where all is finite and the bound
// within what mask_condition takes for granted, hidden keys leave every row as it is; elsewhere the
// attention kernel visits every key.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

// The kernel, to run before those of the form, and `form.mask_check`; or `form.visits_hidden` where
// no such bound can be had. nullopt where the target asks for no exact masks or nothing is skipped.
std::optional<KernelLaunch> mask_check(StepBuilder& builder, AttentionSpec& form);

}  // namespace redfuser::codegen
