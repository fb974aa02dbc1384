// Attention of few rows: each block takes a segment of the keys (split-KV, flash-decoding).
#pragma once

#include <optional>

#include "codegen/attention/mma/block_maps.h"
#include "codegen/attention/mma/split_kv_select.h"

namespace redfuser::codegen {

// nullopt if the sizes do not fit.
std::optional<KernelLaunch> split_kv_kernel(StepBuilder& builder, const AttentionSpec& form);
// `maps`: what its blocks compute first; null: nothing.
KernelLaunch split_kv_kernel(StepBuilder& builder, const AttentionSpec& form,
                             const SplitKvConfig& config, const BlockMaps* maps = nullptr);

}  // namespace redfuser::codegen
