// The attention kernel for head sizes beyond 256 on sm_90a.
#pragma once

#include <optional>
#include <vector>

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

// The kernel, and the kernel that merges the segments of the keys. nullopt if the sizes or operands
// do not fit.
std::optional<std::vector<KernelLaunch>> large_head_kernels(StepBuilder& builder,
                                                            const AttentionSpec& form);

}  // namespace redfuser::codegen
