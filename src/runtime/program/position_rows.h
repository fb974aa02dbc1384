// Positions of a tensor along one axis, as rows of bytes.
#pragma once

#include <cstdint>

#include "redfuser/device.h"

namespace redfuser::runtime {

// `count` rows of `width` bytes each, a pitch apart: row i begins `offset + i * from_pitch` bytes
// from the source and `i * to_pitch` bytes from the target.
struct PositionRows {
  int64_t count = 0, width = 0, from_pitch = 0, to_pitch = 0, offset = 0;
};

// The rows that Session::copy_positions copies. UserError where `to` is no such part of `from`.
PositionRows position_rows(const DeviceTensor& from, int64_t axis, int64_t begin,
                           const DeviceTensor& to);

}  // namespace redfuser::runtime
