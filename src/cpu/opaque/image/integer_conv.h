// Convolutions of 8-bit integers as integer products over blocks of output pixels.
#pragma once

#include <functional>

#include "cpu/opaque/image/conv.h"

namespace redfuser::cpu {

// A row of sums: `count` pixels of one filter from `pixel` on. The sums are c[j] + base, modulo
// 2^32.
struct SumRow {
  int64_t batch, filter, pixel, count;
  const int32_t* c;
  int32_t base;
};

// Calls finish(row) once for every pixel of every filter of Σ (x − x_zero) · (w − w_zero), in
// parallel. x_zero has one element, w_zero one or one for each filter; either may be absent. The
// node's prepared value has the packed filters, if they are constant. False, without a call, for
// operands that are not of this form: of other types, or a channel for each group.
bool convolve_integers(const OpaqueCall& call, const ConvShape& shape, int x, int x_zero, int w,
                       int w_zero, const std::function<void(const SumRow&)>& finish);

}  // namespace redfuser::cpu
