// Convolutions of 8-bit integers.
#pragma once

#include "cpu/opaque/image/conv.h"

namespace redfuser::cpu {

// Σ (x − x_zero) · (w − w_zero) to `target`, int32 modulo 2^32: by convolve_integers, or where it
// does not take the operands by products of floats that hold the sums. The arguments are numbers of
// inputs; those of zero points may be absent.
void convolve_bytes(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                    int w_zero, SumsTarget& target);

}  // namespace redfuser::cpu
