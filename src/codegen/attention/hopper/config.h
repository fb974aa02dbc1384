// Attention on sm_90a: a warpgroup that copies tiles through rings in shared memory, and one to
// three that multiply them (wgmma) and fold the scores into the state, in turns, so that the
// arithmetic of one hides under the products of the others.
#pragma once

#include <optional>

#include "codegen/attention/attention.h"
#include "codegen/attention/bias_tiles.h"
#include "codegen/attention/mask_condition.h"
#include "codegen/core/kernel_config.h"
#include "codegen/core/tma_view.h"

namespace redfuser::codegen {

struct HopperConfig {
  int groups = 2;       // warpgroups of 64 rows each: 1 to 3
  int keys = 128;       // of a tile; a multiple of 16
  int stages = 2;       // tiles of keys, and of values, in flight
  int queries = 1;      // tiles of rows in flight
  bool strips = false;  // the scores' strips are copied to shared memory

  Parameters parameters() const {
    return {{"groups", groups},
            {"keys", keys},
            {"stages", stages},
            {"queries", queries},
            {"strips", strips ? 1 : 0}};
  }
};

// The scores as the family computes them.
struct HopperScores {
  MaskCondition mask;
  // mask.visible is by_tile and by_key: what indices tell of a tile, and what is read for every key
  // (null: nothing is).
  ir::Expr by_tile, by_key;
  ScoreSpec masked, whole;  // whole: of tiles that the mask leaves as they are
  std::vector<BiasTile> terms;
  std::vector<ScoreStrip> strips;

  bool has_terms() const { return !terms.empty() || by_key; }
};

struct HopperOperands {
  TmaOperand query, key, value;
};

}  // namespace redfuser::codegen
