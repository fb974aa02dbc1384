// The time that row tiles take, by estimate, and the number of warpgroups that follows.
#pragma once

#include "codegen/attention/hopper/config.h"

namespace redfuser::codegen {

// Of 1 to `most` groups, those whose row tiles take the least time by estimate; `most` where sizes
// are not known.
int choose_warpgroups(const StepBuilder& builder, const AttentionSpec& form,
                      const HopperScores& scores, int keys, int most);

// Row tiles in flight, of so many groups: 2, so that the next one's queries come while one is
// computed. 1 where few row tiles are unequal: to bring one's queries is to claim it, and it would
// wait while other blocks are out of work.
int hopper_queries(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, int groups);

// Microseconds by estimate, of sizes that are known.
double hopper_time(const StepBuilder& builder, const AttentionSpec& form,
                   const HopperScores& scores, const HopperConfig& config, const KnownSizes& sizes);

}  // namespace redfuser::codegen
