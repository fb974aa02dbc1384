// The portable attention kernel (mma.sync) for many rows, or for few rows with few keys: a block
// has a tile of rows, 16 per warp, and iterates over K/V tiles.
#pragma once

#include "codegen/attention/mma/flash_mma_select.h"

namespace redfuser::codegen {

KernelLaunch flash_mma_kernel(StepBuilder& builder, const AttentionSpec& form,
                              const FlashMmaConfig& config);

}  // namespace redfuser::codegen
