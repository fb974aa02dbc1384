// Attention on sm_90a whose values are wider than one warpgroup's registers hold: a block has 64
// rows and a segment of the keys, its two warpgroups half of the value columns each. One computes
// the scores and passes weights and references to the other through shared memory; or each computes
// those of half of a tile's keys, and they exchange what they reduce and the weights
// (device/wide.cuh). Keys whose first columns are the values, as latent attention has them, are
// copied once. Where two blocks share the keys of their rows they are a cluster, and each merges
// half of the columns of both states; what more blocks leave is merged by a second kernel.
#pragma once

#include <optional>

#include "codegen/attention/hopper/config.h"
#include "codegen/attention/mma/split_kv.h"

namespace redfuser::codegen {

struct LargeHeadConfig {
  int keys = 64;         // of a tile; 64 or 32
  int key_stages = 2;    // tiles of keys in flight
  int value_stages = 0;  // tiles of values in flight; 0: they are columns of the keys' tiles
  int value_slab = 0;    // the slab of a key's tile where the values begin
  int part_slabs = 3;    // of keys and rows that arrive together: scores begin with the first ones
  int scorers = 2;       // groups that compute scores: 1 or 2, of as many parts of the keys
  int cluster = 1;       // blocks of a cluster: 1 or 2

  int group_keys() const { return keys / scorers; }

  Parameters parameters() const {
    return {{"keys", keys},
            {"key_stages", key_stages},
            {"value_stages", value_stages},
            {"scorers", scorers},
            {"cluster", cluster}};
  }
};

// Shared memory of a block: bytes of a tile, offsets, and all.
struct LargeHeadLayout {
  static constexpr int kRows = 64, kSlabColumns = 64, kSlabRowBytes = 128, kAlignment = 1024;
  int query, key, value;
  int keys, values, weights, reduced, barriers;
  int heads;  // of the state for the cluster, behind its columns: where tiles were
  int bytes;
};

}  // namespace redfuser::codegen
