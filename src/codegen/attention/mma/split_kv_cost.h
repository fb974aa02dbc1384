// The time of split-KV attention: every row tile reads its keys and values, from the L2 cache but
// for the first time; the steps of a block follow each other, and the last block of a row tile
// merges the states.
#pragma once

#include "codegen/attention/mma/split_kv_select.h"

namespace redfuser::codegen {

// Estimated microseconds; sizes must be known.
double split_kv_time(StepBuilder& builder, const AttentionSpec& form, const SplitKvConfig& config,
                     const KnownSizes& sizes);

}  // namespace redfuser::codegen
