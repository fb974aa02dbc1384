// Copies of a convolution's operands in the memory order that its kernels take.
#pragma once

#include "codegen/convolution/convolution_step.h"

namespace redfuser::codegen {

// A copy of a value in scratch memory, with dimensions in this order; those that the value does not
// have are left out. Dimension 1 becomes `channels` long, with zeros behind the value's own.
// Returns the scratch buffer's number.
int64_t copy_in_order(const ConvolutionStep& convolution, int64_t value, const MemoryOrder& order,
                      ir::Expr channels, const char* comment);

}  // namespace redfuser::codegen
