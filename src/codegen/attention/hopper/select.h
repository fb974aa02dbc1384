// Which forms the attention kernel for sm_90a takes, and with which tiles.
#pragma once

#include <optional>
#include <vector>

#include "codegen/attention/hopper/config.h"

namespace redfuser::codegen {

// nullopt unless the target is sm_90, the operands are halves that the copy engine can fetch, and
// the weights are what the last pass over a tile computes.
std::optional<HopperOperands> hopper_operands(StepBuilder& builder, const AttentionSpec& form);

// The same of any sizes.
std::optional<HopperOperands> tma_operands(StepBuilder& builder, const AttentionSpec& form);

HopperScores hopper_scores(ir::ExprPool& pool, const AttentionSpec& form);

// The default for a form's sizes. Head sizes are at most 256.
HopperConfig hopper_config(const StepBuilder& builder, const AttentionSpec& form,
                           const HopperScores& scores);

// What fits of row tiles of so many groups and tiles of so many keys: with two row tiles in flight,
// and with one and more stages.
std::vector<HopperConfig> hopper_configs(const Target& target, const AttentionSpec& form,
                                         const HopperScores& scores, int groups, int keys);

// Dynamic shared memory of a block.
int hopper_shared_bytes(const AttentionSpec& form, const HopperScores& scores,
                        const HopperConfig& config);

// That of one group for the score terms' two buffers, and for its part of the strips behind them.
int hopper_term_bytes(const HopperScores& scores, const HopperConfig& config);
int hopper_strip_bytes(const HopperScores& scores, const HopperConfig& config);

}  // namespace redfuser::codegen
