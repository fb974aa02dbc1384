// Which attention cascades the kernel for sm_90a supports, and its tile sizes.
#pragma once

#include <optional>
#include <vector>

#include "codegen/attention/hopper/config.h"

namespace redfuser::codegen {

// nullopt unless the target is sm_90, TMA can load the operands, they are of one 16-bit type, and
// the last pass over a tile computes the weights.
std::optional<HopperOperands> hopper_operands(StepBuilder& builder, const AttentionSpec& form);

// The same for head sizes without a limit.
std::optional<HopperOperands> tma_operands(StepBuilder& builder, const AttentionSpec& form);

HopperScores hopper_scores(ir::ExprPool& pool, const AttentionSpec& form);

// The default configuration. Head sizes are at most 256.
HopperConfig hopper_config(const StepBuilder& builder, const AttentionSpec& form,
                           const HopperScores& scores);

// Configurations with so many consumer warpgroups and keys per tile: with two Q tiles in flight and
// as many stages as fit, and with one Q tile if more stages fit then.
std::vector<HopperConfig> hopper_configs(const Target& target, const AttentionSpec& form,
                                         const HopperScores& scores, int groups, int keys);

// Dynamic shared memory of a block.
int hopper_shared_bytes(const AttentionSpec& form, const HopperScores& scores,
                        const HopperConfig& config);

// Bytes of one warpgroup: both buffers of the bias tiles, and the strips behind them.
int hopper_term_bytes(const HopperScores& scores, const HopperConfig& config);
int hopper_strip_bytes(const HopperScores& scores, const HopperConfig& config);

}  // namespace redfuser::codegen
