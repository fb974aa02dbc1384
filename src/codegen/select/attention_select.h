// The choices for an attention cascade: family, tiles of rows and keys, tiles in flight, segments.
#pragma once

#include <vector>

#include "codegen/attention/attention.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// As kernel_configs; the first is that of the kernel which computes these sizes by default.
std::vector<KernelConfig> attention_configs(StepBuilder& builder, const AttentionSpec& form,
                                            const KnownSizes& sizes);

// The kernel of one of them.
void add_attention(StepBuilder& builder, const AttentionSpec& form, const KernelConfig& choice);

}  // namespace redfuser::codegen
