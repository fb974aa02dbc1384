// Attention on sm_90a whose values are wider than one warpgroup's registers hold: a block has 64
// rows and a segment of the keys, its two warpgroups half of the value columns each. They compute
// the scores of half of a tile's keys each and exchange what they reduce and the weights through
// shared memory (device/wide.cuh). Keys whose first columns are the values, as latent attention has
// them, are copied once. States of segments are merged by a second kernel.
#pragma once

#include <optional>

#include "codegen/attention_hopper.h"
#include "codegen/attention_split.h"

namespace redfuser {

struct WideConfig {
  int keys = 64;         // of a tile; 64 or 32
  int key_stages = 2;    // tiles of keys in flight
  int value_stages = 0;  // tiles of values in flight; 0: they are columns of the keys' tiles
  int value_slab = 0;    // the slab of a key's tile where the values begin

  int group_keys() const { return keys / 2; }
};

// Shared memory of a block: bytes of a tile, offsets, and all.
struct WideLayout {
  static constexpr int kRows = 64, kSlabColumns = 64, kSlabRowBytes = 128, kAlignment = 1024;
  int query, key, value;
  int keys, values, weights, reduced, barriers;
  int bytes;
};
WideLayout wide_layout(const AttentionForm& form, const WideConfig& config);

// Columns of a warpgroup: whole slabs.
int wide_columns(const AttentionForm& form);

// nullopt for sizes that do not fit.
std::optional<WideConfig> wide_config(StepBuilder& builder, const AttentionForm& form,
                                      const HopperOperands& operands);

// A block per row tile and segment; `states` has state_block(form, 1) floats for each of a tile's
// rows, those of a row's segments one after the other.
Segments wide_segments(StepBuilder& builder, const AttentionForm& form, const WideConfig& config);

// Masks and terms are evaluated element by element.
HopperScores wide_scores(ExprPool& pool, const AttentionForm& form);

// Merges the states of segments where there are several.
KernelLaunch attention_wide_merge_kernel(StepBuilder& builder, const AttentionForm& form,
                                         const Segments& segments);

}  // namespace redfuser
