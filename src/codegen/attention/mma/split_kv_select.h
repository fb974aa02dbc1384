// Split-KV attention: segments of the keys, and the shared memory of a block.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/tma_tile.h"

namespace redfuser::codegen {

inline constexpr const char* kSplitKvFamily = "attention_split";

struct SplitKvConfig {
  int warps = 4, keys = 32, stages = 3;  // keys of a warp's tile; tiles in flight
  bool boxed = false;                    // K and V are loaded by TMA
  int blocks = 1;                        // resident on an SM
  int threads() const { return warps * 32; }
  int step() const { return warps * keys; }  // keys of all warps at a time

  Parameters parameters() const {
    return {{"warps", warps},
            {"keys", keys},
            {"stages", stages},
            {"boxed", boxed ? 1 : 0},
            {"blocks", blocks}};
  }
  static SplitKvConfig of(const KernelConfig& choice) {
    return {choice.at("warps"), choice.at("keys"), choice.at("stages"), choice.at("boxed") != 0,
            choice.at("blocks")};
  }
};

// Shared memory of a block: the rows, then each warp's ring of tiles, then barriers.
struct SplitKvLayout {
  static constexpr int kStatic = 16;  // bytes of static shared memory
  int query, key, value;              // bytes of a tile
  int staged;                         // of a warp's weights
  int rings, barriers;                // offsets
  int bytes;
};
SplitKvLayout split_kv_layout(const Target& target, const AttentionSpec& form,
                              const SplitKvConfig& config);
// Dynamic shared memory of a block: the tiles; the merge of the warps' states reuses it.
int split_shared_bytes(const Target& target, const AttentionSpec& form,
                       const SplitKvConfig& config);

// Whether a warp's registers hold the state and a tile of so many keys; fp32 operands have two
// parts.
bool split_fits_registers(const Target& target, const AttentionSpec& form, int keys);

// The configuration with the most bytes in flight that fits; nullopt if none does.
std::optional<SplitKvConfig> split_kv_config(const Target& target, const AttentionSpec& form,
                                             bool boxed);

// Rows of a block: a power of two up to 16, of which a warp computes at least 8.
int split_rows(const AttentionSpec& form);

// The keys of each row tile in `count` segments. If there are several, each stores a block of
// partial states in scratch memory.
struct Segments {
  static constexpr int kMax = 128;
  ir::Expr row_tiles, groups, count;
  int64_t states;
};
Segments split_segments(StepBuilder& builder, const AttentionSpec& form,
                        const SplitKvConfig& config);

// K and V as TMA operands; nullopt where TMA cannot load them.
struct TmaTiles {
  TmaOperand key, value;
};
std::optional<TmaTiles> tma_tiles(StepBuilder& builder, const AttentionSpec& form);

}  // namespace redfuser::codegen
