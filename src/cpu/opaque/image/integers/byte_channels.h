// Convolutions of 8-bit integers where every group has one channel: filters of bytes that slide
// over the padded channel.
#pragma once

#include "cpu/opaque/image/conv.h"

namespace redfuser::cpu {

// Σ (x − x_zero) · (w − w_zero), int32 modulo 2^32, to `target`, in parallel. x_zero has one
// element, w_zero one or one for each filter; either may be absent. The node's prepared value has
// the words of the filters, if they are constant. False, without a block, for operands or windows
// that are not of this form, and on machines without such a kernel.
bool convolve_byte_channels(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero,
                            int w, int w_zero, SumsTarget& target);

}  // namespace redfuser::cpu
