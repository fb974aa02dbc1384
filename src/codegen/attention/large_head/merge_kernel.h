// States of a row's segments become its outputs.
#pragma once

#include "codegen/attention/mma/split_kv_select.h"

namespace redfuser::codegen {

// Merges the states of segments where there are several.
KernelLaunch large_head_merge_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const Segments& segments);

}  // namespace redfuser::codegen
