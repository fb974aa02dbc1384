// Attention on sm_90a for head sizes beyond the registers of one warpgroup. A block has 64 rows and
// a segment of the keys; each of its two consumer warpgroups has half of the value columns.
//
// Scores: one warpgroup computes them and passes weights and rescale references to the other
// through shared memory; or each computes the scores of half of a tile's keys, and both exchange
// reductions and weights (device/wide.cuh). If the values are columns of the keys, as in multi-head
// latent attention (MLA), one copy serves both. Two blocks that share the keys of their rows form a
// cluster, of which each block merges half of the columns; a second kernel merges more segments.
#pragma once

#include <optional>

#include "codegen/attention/hopper/config.h"
#include "codegen/attention/mma/split_kv.h"

namespace redfuser::codegen {

struct LargeHeadConfig {
  int keys = 64;         // of a K/V tile; 64 or 32
  int key_stages = 2;    // K tiles in flight
  int value_stages = 0;  // V tiles in flight; 0: values are columns of the K tiles
  int value_slab = 0;    // the slab of a K tile where the values begin
  int part_slabs = 3;    // of Q and K per barrier: the product starts with the first part
  int scorers = 2;       // warpgroups that compute scores, each of keys / scorers: 1 or 2
  int cluster = 1;       // blocks of a cluster: 1 or 2

  Parameters parameters() const {
    return {{"keys", keys},
            {"key_stages", key_stages},
            {"value_stages", value_stages},
            {"scorers", scorers},
            {"cluster", cluster}};
  }
};

// Shared memory of a block: bytes of the tiles, offsets, and the total.
struct LargeHeadLayout {
  static constexpr int kRows = Warpgroup::kRows;
  int query, key, value;
  int keys, values, weights, reduced, barriers;
  int heads;  // offset of the state's heads for the cluster; the state replaces the tiles
  int bytes;
};

}  // namespace redfuser::codegen
