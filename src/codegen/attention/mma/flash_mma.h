// The portable attention kernel for many rows, or for few with few keys: a block has a tile of
// rows, 16 of each warp, and goes through the keys tile by tile.
#pragma once

#include "codegen/attention/mma/flash_mma_select.h"

namespace redfuser::codegen {

KernelLaunch flash_mma_kernel(StepBuilder& builder, const AttentionSpec& form,
                              const FlashMmaConfig& config);

}  // namespace redfuser::codegen
