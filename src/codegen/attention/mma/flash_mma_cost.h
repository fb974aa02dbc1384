// The time of the portable attention kernel: turns of blocks, each of which waits for its K/V tiles
// one after the other, beside the work of all blocks of an SM.
#pragma once

#include "codegen/attention/mma/flash_mma_select.h"

namespace redfuser::codegen {

// Estimated microseconds; sizes must be known.
double flash_mma_time(StepBuilder& builder, const AttentionSpec& form, const FlashMmaConfig& config,
                      const KnownSizes& sizes);

}  // namespace redfuser::codegen
