// Where a cascade reads a value as tiles of rows and streamed axis.
#pragma once

#include "cascade/cascade.h"

namespace redfuser::fuse {

// Whether every read of `value` along the streamed axis takes each of its elements once: at the
// axis itself or at all its digits, shifted or clamped. At ⌊j/k⌋, at a distance from the row, or at
// positions that are data, rows and streamed elements share what is read: a contraction computed
// there would compute it again each time, and is no product of two tiles.
bool reads_as_tile(ir::ExprPool& pool, const cascade::Cascade& cascade, int64_t value);

}  // namespace redfuser::fuse
