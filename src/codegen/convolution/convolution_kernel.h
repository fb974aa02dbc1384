// The kernels of convolutions by the tensor cores.
#pragma once

#include "codegen/convolution/convolution_config.h"

namespace redfuser::codegen {

// Adds the copies that the form needs and the kernels of the default: the fastest at the builder's
// sizes or, where it does not know the number of positions, of each class of it.
void add_convolution(const ConvolutionStep& convolution, const ConvolutionForm& form);

// The same with the kernel of a configuration, for any sizes.
void add_convolution(const ConvolutionStep& convolution, const ConvolutionForm& form,
                     const ConvolutionConfig& config);

}  // namespace redfuser::codegen
