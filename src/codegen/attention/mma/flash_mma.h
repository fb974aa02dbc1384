// The portable attention kernel: a block has 64 rows, on mma.sync.
#pragma once

#include "codegen/attention/attention.h"

namespace redfuser::codegen {

// False for head sizes of which the GPU's shared memory does not hold the tiles.
bool fits_attention_kernel(StepBuilder& builder, const AttentionSpec& form);
KernelLaunch attention_kernel(StepBuilder& builder, const AttentionSpec& form);

}  // namespace redfuser::codegen
