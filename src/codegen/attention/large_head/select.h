// Which forms the family of large heads takes, and how they are cut.
#pragma once

#include <optional>

#include "codegen/attention/hopper/config.h"
#include "codegen/attention/large_head/config.h"
#include "codegen/attention/mma/split_kv_select.h"

namespace redfuser::codegen {

LargeHeadLayout large_head_layout(const AttentionSpec& form, const LargeHeadConfig& config);

// Parts of a tile of keys or rows.
int wide_parts(const AttentionSpec& form, const LargeHeadConfig& config);

// Columns of a warpgroup: whole slabs.
int wide_columns(const AttentionSpec& form);

// nullopt for sizes that do not fit.
std::optional<LargeHeadConfig> large_head_config(StepBuilder& builder, const AttentionSpec& form,
                                                 const HopperOperands& operands);

// 1 where values are columns of the keys and moved by references alone, and no reads besides those
// of the operands take the registers that the scores of a whole tile need; 2 otherwise.
int wide_scorers(ir::ExprPool& pool, const AttentionSpec& form, const LargeHeadConfig& config);

// Blocks of a cluster: 2 where so many share a row tile's keys, of sizes that are known. (Clusters
// of 8 take longer over distributed shared memory than a second kernel does over the states of
// several: 36 us against 19 for one batch of 128 heads and 4096 keys on an H100.)
int wide_cluster(StepBuilder& builder, const AttentionSpec& form, const LargeHeadConfig& config);

// A cluster per row tile and segment; one segment for clusters of 2. `states`: for each of a tile's
// rows state_block(form, 1) floats for every segment, one after the other.
Segments wide_segments(StepBuilder& builder, const AttentionSpec& form,
                       const LargeHeadConfig& config);

// Masks and terms are evaluated element by element.
HopperScores wide_scores(ir::ExprPool& pool, const AttentionSpec& form);

}  // namespace redfuser::codegen
