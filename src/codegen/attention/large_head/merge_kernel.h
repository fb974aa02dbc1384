// The kernel that merges the partial states of segments and computes the outputs.
#pragma once

#include "codegen/attention/mma/split_kv_select.h"

namespace redfuser::codegen {

// Merges the states of segments if there are several.
KernelLaunch large_head_merge_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const Segments& segments);

}  // namespace redfuser::codegen
