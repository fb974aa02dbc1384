// Convolutions of 8-bit integers as integer products over blocks of output positions.
#pragma once

#include "cpu/opaque/image/conv.h"

namespace redfuser::cpu {

// Σ (x − x_zero) · (w − w_zero), int32 modulo 2^32, to `target`, in parallel. x_zero has one
// element, w_zero one or one for each filter; either may be absent. The node's prepared value has
// the packed filters, if they are constant. False, without a block, for operands that are not of
// this form: of other types, or a channel for each group.
bool convolve_integers(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                       int w_zero, SumsTarget& target);

}  // namespace redfuser::cpu
