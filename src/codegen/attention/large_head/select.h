// Which attention cascades the kernel for large heads supports, and its tile sizes.
#pragma once

#include <optional>

#include "codegen/attention/hopper/config.h"
#include "codegen/attention/large_head/config.h"
#include "codegen/attention/mma/split_kv_select.h"

namespace redfuser::codegen {

LargeHeadLayout large_head_layout(const AttentionSpec& form, const LargeHeadConfig& config);

// Parts of a Q or K tile, each with its own barrier.
int wide_parts(const AttentionSpec& form, const LargeHeadConfig& config);

// Value columns of a warpgroup: whole slabs.
int wide_columns(const AttentionSpec& form);

// nullopt if the sizes do not fit.
std::optional<LargeHeadConfig> large_head_config(StepBuilder& builder, const AttentionSpec& form,
                                                 const HopperOperands& operands);

// 1 if values are columns of the keys, their rescaling depends on the references alone, and nothing
// but the operands is read, so registers hold the scores of a whole tile; 2 otherwise.
int wide_scorers(ir::ExprPool& pool, const AttentionSpec& form, const LargeHeadConfig& config);

// Blocks of a cluster: 2 where two blocks share the keys of a row tile and sizes are known, else 1.
// Larger clusters are slower over distributed shared memory than a second kernel that merges the
// segments.
int wide_cluster(StepBuilder& builder, const AttentionSpec& form, const LargeHeadConfig& config);

// A cluster per row tile and segment; one segment for clusters of 2. `states`: state_block(form, 1)
// floats per segment and row of a tile, segments innermost.
Segments wide_segments(StepBuilder& builder, const AttentionSpec& form,
                       const LargeHeadConfig& config);

// The scores with masks and bias terms evaluated for every element.
HopperScores wide_scores(ir::ExprPool& pool, const AttentionSpec& form);

}  // namespace redfuser::codegen
