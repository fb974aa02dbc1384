#include "runtime/program/position_rows.h"

#include "base/error.h"

namespace redfuser::runtime {
namespace {

std::string type_of(const DeviceTensor& tensor) {
  return describe(Tensor::wrap(tensor.dtype, tensor.dims, nullptr, nullptr));
}

// Positions that the memory has room for, along the only axis that has any.
int64_t room_of(const DeviceTensor& tensor, size_t axis) {
  const Dims& memory = tensor.room.empty() ? tensor.dims : tensor.room;
  for (size_t i = 0; i < memory.size(); ++i) {
    if (i != axis && memory[i] != tensor.dims[i]) {
      user_error("{} has room along another axis than {}", type_of(tensor), axis);
    }
  }
  return memory[axis];
}

}  // namespace

PositionRows position_rows(const DeviceTensor& from, int64_t axis, int64_t begin,
                           const DeviceTensor& to) {
  const auto rank = static_cast<int64_t>(from.dims.size());
  bool part =
      axis >= 0 && axis < rank && to.dims.size() == from.dims.size() && to.dtype == from.dtype;
  PositionRows rows{1, static_cast<int64_t>(size_of(from.dtype)), 0, 0, 0};
  for (int64_t i = 0; part && i < rank; ++i) {
    const int64_t size = from.dims[static_cast<size_t>(i)];
    part = i == axis || to.dims[static_cast<size_t>(i)] == size;
    if (i < axis) rows.count *= size;
    if (i > axis) rows.width *= size;
  }
  const auto along = static_cast<size_t>(axis);
  if (!part || begin < 0 || to.dims[along] > from.dims[along] - begin) {
    user_error("{} is not a part of {} from position {} of axis {}", type_of(to), type_of(from),
               begin, axis);
  }
  rows.offset = begin * rows.width;
  rows.from_pitch = room_of(from, along) * rows.width;
  rows.to_pitch = room_of(to, along) * rows.width;
  rows.width *= to.dims[along];
  if (rows.width == 0) rows.count = 0;
  return rows;
}

}  // namespace redfuser::runtime
