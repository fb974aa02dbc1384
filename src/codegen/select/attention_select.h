// The choices for an attention cascade: family, tiles of rows and keys, tiles in flight, segments.
#pragma once

#include <optional>
#include <vector>

#include "codegen/attention/attention.h"
#include "codegen/attention/mma/split_kv_select.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// True (of sizes) where blocks of 64 rows each would hold few rows, or be few with many keys each.
ir::Expr has_few_rows(StepBuilder& builder, const AttentionSpec& form);

// Few rows with few keys, both known: a block of the portable kernel has all of them.
bool is_short(const StepBuilder& builder, const AttentionSpec& form);

// Configurations with their times; the first is that of the kernel which computes the builder's
// sizes by default. None where sizes are not known.
std::vector<Candidate> attention_configs(StepBuilder& builder, const AttentionSpec& form);

// The sizes for which the default splits the keys (split-KV), and how; nullopt: for none.
struct SplitShare {
  ir::Expr when;  // a bool over sizes
  SplitKvConfig config;
};
std::optional<SplitShare> split_share(StepBuilder& builder, const AttentionSpec& form);

// Adds the kernels of the default: the least estimate where all sizes are known, else kernels for
// few and for many rows. False if no kernel takes the form.
bool add_attention(StepBuilder& builder, const AttentionSpec& form);

// The kernel of one of the configurations.
void add_attention(StepBuilder& builder, const AttentionSpec& form, const KernelConfig& choice);

}  // namespace redfuser::codegen
