// Attention on sm_90a, warp-specialised as in FlashAttention-3: a producer warpgroup loads tiles by
// TMA into rings in shared memory; one to three consumer warpgroups multiply them (wgmma) and fold
// the scores into the state. Consumers take turns, so the softmax of one overlaps with the products
// of the others.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"
#include "codegen/attention/bias_tiles.h"
#include "codegen/attention/mask_condition.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/tma_tile.h"

namespace redfuser::codegen {

// A warpgroup of wgmma: four warps, each with 16 rows of a product.
struct Warpgroup {
  static constexpr int kThreads = 128, kRows = 64;
};

struct HopperConfig {
  // Shared memory for the barriers of a block and the indices of its row tiles.
  static constexpr int kBarrierBytes = 1024;

  int groups = 2;       // consumer warpgroups of 64 rows each: 1 to 3
  int keys = 128;       // of a K/V tile; a multiple of 16
  int stages = 2;       // K tiles, and V tiles, in flight
  int queries = 1;      // Q tiles in flight
  bool strips = false;  // bias strips are copied to shared memory

  Parameters parameters() const {
    return {{"groups", groups},
            {"keys", keys},
            {"stages", stages},
            {"queries", queries},
            {"strips", strips ? 1 : 0}};
  }
};

// The scores as this family computes them.
struct HopperScores {
  MaskCondition mask;
  // mask.visible = by_tile and by_key. by_tile depends on indices, so a whole tile is decided at
  // once; by_key reads tensor elements for every key (null: it reads none).
  ir::Expr by_tile, by_key;
  ScoreSpec masked, whole;  // whole: of tiles in which every key is visible
  std::vector<BiasTile> terms;
  std::vector<ScoreStrip> strips;

  bool has_terms() const { return !terms.empty() || by_key; }
};

struct HopperOperands {
  TmaOperand query, key, value;
};

}  // namespace redfuser::codegen
