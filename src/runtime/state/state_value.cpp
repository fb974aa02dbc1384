#include "runtime/state/state_value.h"

#include <algorithm>
#include <bit>

#include "redfuser/dlpack.h"

namespace redfuser::runtime {
namespace {

constexpr int64_t kFewestPositions = 16;

// The sizes of memory for so many positions, with room for more.
Dims roomy(Dims dims, const std::optional<int64_t>& axis, int64_t capacity) {
  if (!axis) return dims;
  int64_t& positions = dims[static_cast<size_t>(*axis)];
  const auto wanted = static_cast<uint64_t>(std::max(positions, kFewestPositions));
  const auto doubled = static_cast<int64_t>(std::bit_ceil(wanted));
  positions = capacity > 0 ? std::max(positions, std::min(doubled, capacity)) : doubled;
  return dims;
}

DeviceTensor memory_for(Session& session, DType dtype, const Dims& dims) {
  if (session.stream() == nullptr) return dlpack::on_host(Tensor(dtype, dims));
  return session.allocate(dtype, dims);
}

}  // namespace

StateValue::StateValue(StatePair pair, ValueInfo declared, int64_t capacity)
    : pair_(std::move(pair)), declared_(std::move(declared)), capacity_(capacity) {}

DeviceTensor StateValue::value() const {
  DeviceTensor value = room_;
  value.dims = dims_;
  return value;
}

DeviceTensor StateValue::dense(Session& session) const {
  DeviceTensor first = value();
  if (room_.room.empty()) return first;
  const auto outer = dims_.begin() + static_cast<std::ptrdiff_t>(*pair_.axis);
  if (std::all_of(dims_.begin(), outer, [](int64_t size) { return size == 1; })) {
    first.room.clear();
    return first;
  }
  const DeviceTensor copy = memory_for(session, room_.dtype, dims_);
  session.copy_positions(first, *pair_.axis, 0, copy);
  return copy;
}

DeviceTensor StateValue::appended(Session& session, const Dims& dims) {
  const auto axis = static_cast<size_t>(*pair_.axis);
  const bool fits = !room_.room.empty() && room_.room[axis] >= dims[axis];
  if (!written()) {
    spare_ = with_room(session, dims);
  } else if (!fits || room_.owner.use_count() > 1) {
    DeviceTensor memory = with_room(session, dims);
    memory.dims = dims_;
    session.copy_positions(value(), *pair_.axis, 0, memory);
    room_ = memory;
  }
  DeviceTensor target = written() ? room_ : spare_;
  target.dims = dims;
  return target;
}

DeviceTensor StateValue::with_room(Session& session, const Dims& dims) const {
  const Dims room = roomy(dims, pair_.axis, capacity_);
  DeviceTensor memory = memory_for(session, declared_.dtype, room);
  memory.room = room;
  return memory;
}

int64_t StateValue::length() const {
  return written() && pair_.axis ? dims_[static_cast<size_t>(*pair_.axis)] : 0;
}

DeviceTensor StateValue::target(Session& session, const Dims& dims) {
  if (session.stream() == nullptr) return memory_for(session, declared_.dtype, dims);
  const bool own = room_.owner.use_count() == 1;
  if (!pair_.axis && own && dims == dims_) return room_;
  const bool free = spare_.owner.use_count() == 1;
  if (!free || element_count(spare_.dims) < element_count(dims)) {
    spare_ = DeviceTensor();
    spare_ = session.allocate(declared_.dtype, roomy(dims, pair_.axis, capacity_));
  }
  DeviceTensor target = spare_;
  target.dims = dims;
  return target;
}

void StateValue::replace(const DeviceTensor& value) {
  dims_ = value.dims;
  if (value.on_host || value.data == room_.data) {
    room_ = value;
  } else {
    std::swap(room_, spare_);
  }
}

void StateValue::drop() {
  dims_.clear();
  room_ = spare_ = DeviceTensor();
}

StateValue StateValue::fork() const {
  StateValue other = *this;
  other.spare_ = DeviceTensor();
  return other;
}

}  // namespace redfuser::runtime
