// Exact masks (Target::exact_masks): a kernel before the attention kernel decides whether hidden
// keys can be skipped.
//
// In the unfused graph masked elements still contribute: 0 · v is NaN where v is not finite, and
// s + -inf is NaN where s is +inf or NaN. The kernel reads the operands of masked elements once and
// bounds the scores by their largest magnitudes (cascade/visibility/masked_operands.h). If all are
// finite and the bound is within the assumption of mask_condition, skipped keys change no row;
// otherwise the attention kernel visits every key.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

// Returns the kernel, which runs before the attention kernel, and sets `form.mask_check`; sets
// `form.visits_hidden` instead where the scores have no such bound. nullopt unless the target asks
// for exact masks and the kernel skips keys.
std::optional<KernelLaunch> mask_check(StepBuilder& builder, AttentionSpec& form);

}  // namespace redfuser::codegen
