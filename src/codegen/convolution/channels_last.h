// Copies of a convolution's operands in the memory order that its kernels take, in scratch memory.
// All return the scratch buffer's number.
#pragma once

#include "codegen/convolution/convolution_step.h"

namespace redfuser::codegen {

// The input with its channels last, `channels` of them: zeros follow its own.
int64_t copy_input(const ConvolutionStep& convolution, ir::Expr channels);

// The filters with their channels last, where so many groups are `merged` to one of `channels`:
// elements of the group's other channels, and of those behind them, are zeros.
int64_t copy_filters(const ConvolutionStep& convolution, ir::Expr channels, int64_t merged);

// Filters of one channel, which come last.
int64_t copy_depthwise_filters(const ConvolutionStep& convolution);

}  // namespace redfuser::codegen
