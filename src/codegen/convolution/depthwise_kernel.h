// The kernels of depthwise convolutions.
#pragma once

#include "codegen/convolution/depthwise_config.h"

namespace redfuser::codegen {

// Adds the copies that the form needs and the kernel of a configuration, for any sizes.
void add_depthwise(const ConvolutionStep& convolution, const ConvolutionForm& form,
                   const DepthwiseConfig& config);

}  // namespace redfuser::codegen
