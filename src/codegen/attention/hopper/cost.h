// Estimated time of the row tiles, and the number of warpgroups chosen by it.
#pragma once

#include "codegen/attention/hopper/config.h"

namespace redfuser::codegen {

// The number of consumer warpgroups, 1 to `most`, with the least estimated time; `most` where sizes
// are unknown.
int choose_warpgroups(const StepBuilder& builder, const AttentionSpec& form,
                      const HopperScores& scores, int keys, int most);

// Q tiles in flight: 2, so that the next Q tile is loaded during the computation of one. 1 where
// row tiles are few and of unequal time: loading Q claims the row tile, which would wait while
// other SMs are idle.
int hopper_queries(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, int groups);

// Estimated microseconds; sizes must be known.
double hopper_time(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, const HopperConfig& config, const KnownSizes& sizes);

}  // namespace redfuser::codegen
