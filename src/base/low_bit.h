// The floating types of 8 bits and fewer, as codes: OCP's E4M3 (fn) and E5M2, their variants
// without negative zero and infinities (fnuz), the power-of-two scale E8M0, and E2M1 of 4 bits.
#pragma once

#include <cstdint>

#include "redfuser/tensor.h"

namespace redfuser {

// The value of `code` (InternalError unless is_low_bit_float(dtype)).
float low_bit_value(DType dtype, uint8_t code);
// The code nearest to `value`, ties to the even code. Beyond the largest value: infinity where the
// type has one, else NaN; E2M1 has neither and saturates, and takes NaN to -0. E8M0 rounds up to a
// power of two and has no sign; values that are not positive become NaN, zero its smallest power.
uint8_t low_bit_code(DType dtype, float value);
// The largest finite value.
float low_bit_maximum(DType dtype);

}  // namespace redfuser
