// Attention of few rows: how the keys are cut, and the shared memory of a block.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/tma_view.h"

namespace redfuser::codegen {

struct SplitKvConfig {
  int warps = 4, keys = 32, stages = 3;  // keys of a warp's tile; tiles in flight
  bool boxed = false;                    // tiles come by the copy engine of sm_90
  int blocks = 1;                        // at once on a multiprocessor
  int threads() const { return warps * 32; }
  int step() const { return warps * keys; }  // keys of a block at a time

  Parameters parameters() const {
    return {{"warps", warps},
            {"keys", keys},
            {"stages", stages},
            {"boxed", boxed ? 1 : 0},
            {"blocks", blocks}};
  }
};

// Shared memory of a block: the rows, then each warp's ring of tiles, then barriers.
struct SplitKvLayout {
  static constexpr int kSlabColumns = 64, kSlabRowBytes = 128, kAlignment = 1024;
  static constexpr int kStatic = 16;  // static shared memory besides
  int query, key, value;              // bytes of a tile
  int staged;                         // of a warp's weights
  int rings, barriers;                // offsets
  int bytes;
};
SplitKvLayout split_kv_layout(const Target& target, const AttentionSpec& form,
                              const SplitKvConfig& config);
// Dynamic shared memory of a block: the tiles, in whose place the warps' states are merged.
int split_shared_bytes(const Target& target, const AttentionSpec& form,
                       const SplitKvConfig& config);

// Whether a warp's registers hold the states beside tiles of so many keys: floats take two parts.
bool split_fits_registers(const Target& target, const AttentionSpec& form, int keys);

// The most memory in flight that fits; nullopt if none does.
std::optional<SplitKvConfig> split_kv_config(const Target& target, const AttentionSpec& form,
                                             bool boxed);

// Rows of a block: a power of two up to 16, of which a warp computes at least 8.
int split_rows(const AttentionSpec& form);

// Every row tile's keys in so many segments, each of which leaves a block of states in scratch
// memory if there are several.
struct Segments {
  static constexpr int kMax = 128;
  ir::Expr row_tiles, groups, count;
  int64_t states;
};
Segments split_segments(StepBuilder& builder, const AttentionSpec& form,
                        const SplitKvConfig& config);

// Keys and values as the copy engine fetches them; nullopt where it cannot.
struct TmaTiles {
  TmaOperand key, value;
};
std::optional<TmaTiles> tma_tiles(StepBuilder& builder, const AttentionSpec& form);

// Microseconds by estimate, of sizes that are known.
double split_kv_time(StepBuilder& builder, const AttentionSpec& form, const SplitKvConfig& config,
                     const KnownSizes& sizes);

}  // namespace redfuser::codegen
