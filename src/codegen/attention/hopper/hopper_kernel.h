// The attention kernel for sm_90a.
#pragma once

#include "codegen/attention/hopper/config.h"

namespace redfuser::codegen {

KernelLaunch hopper_attention_kernel(StepBuilder& builder, const AttentionSpec& form,
                                     const HopperScores& scores, const HopperOperands& operands,
                                     const HopperConfig& config);

}  // namespace redfuser::codegen
