// Whether a cascade reads a value as tiles of rows and streamed axis.
#pragma once

#include "cascade/cascade.h"

namespace redfuser::fuse {

// Whether every read of `value` along the streamed axis reads each element once: at the axis itself
// or at all its digits, shifted or clamped. Reads at ⌊j/k⌋, at a distance from the row, or at
// positions that are data repeat elements: a contraction there would be recomputed for each element
// and cannot use matrix tiles.
bool reads_as_tile(ir::ExprPool& pool, const cascade::Cascade& cascade, int64_t value);

}  // namespace redfuser::fuse
