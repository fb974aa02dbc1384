// Configurations of the portable attention kernel and their estimated times.
#pragma once

#include <optional>
#include <vector>

#include "codegen/attention/attention.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

struct FlashMmaConfig {
  int warps = 4, keys = 64, stages = 2;  // keys of a K/V tile; tiles in flight
  int rows() const { return warps * 16; }

  Parameters parameters() const { return {{"warps", warps}, {"keys", keys}, {"stages", stages}}; }
};

// Dynamic shared memory of a block.
int flash_mma_shared_bytes(const Target& target, const AttentionSpec& form,
                           const FlashMmaConfig& config);

// The default; nullopt if shared memory does not hold the tiles.
std::optional<FlashMmaConfig> flash_mma_config(const Target& target, const AttentionSpec& form);

// All configurations that fit and differ for these sizes.
std::vector<FlashMmaConfig> flash_mma_configs(const Target& target, const AttentionSpec& form);

}  // namespace redfuser::codegen
