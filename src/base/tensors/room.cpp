#include "base/tensors/room.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/tensors/blocks.h"

namespace redfuser {
namespace {

class RoomContents final : public DeferredContents {
 public:
  RoomContents(std::shared_ptr<Room> room, Dims dims)
      : room_(std::move(room)),
        dims_(std::move(dims)),
        first_(leads(dims_, room_->tensor.dims()) ? room_->tensor.data() : nullptr) {}

  const std::shared_ptr<Room>& room() const { return room_; }
  const Dims& dims() const { return dims_; }

  void write(size_t offset, size_t bytes, char* to) const override {
    const Dims& room = room_->tensor.dims();
    const auto* memory = static_cast<const char*>(room_->tensor.data());
    // Runs lie one after another in the value; within a run, elements do in the room too.
    size_t axis = dims_.size();
    size_t run = size_of(room_->tensor.dtype()), stride = run;
    for (bool whole = true; whole && axis > 0;) {
      --axis;
      whole = dims_[axis] == room[axis];
      run *= static_cast<size_t>(dims_[axis]);
      stride *= static_cast<size_t>(room[axis]);
    }
    while (bytes > 0) {
      const size_t within = offset % run, count = std::min(bytes, run - within);
      std::memcpy(to, memory + place(offset / run, axis) * stride + within, count);
      offset += count, to += count, bytes -= count;
    }
  }

 protected:
  const void* in_memory() const override { return first_; }

 private:
  // Of run `number`, whose indices are those of the axes before `axis`, in the room.
  size_t place(size_t number, size_t axis) const {
    size_t place = 0, step = 1;
    for (size_t k = axis; k-- > 0;) {
      const auto size = static_cast<size_t>(dims_[k]);
      place += number % size * step;
      number /= size;
      step *= static_cast<size_t>(room_->tensor.dims()[k]);
    }
    return place;
  }

  const std::shared_ptr<Room> room_;
  const Dims dims_;
  const void* first_;
};

}  // namespace

Tensor value_of(std::shared_ptr<Room> room, Dims dims) {
  RF_CHECK(room->tensor.dims().size() == dims.size(), "a value of rank {} in room for {}",
           dims.size(), describe(room->tensor));
  const DType dtype = room->tensor.dtype();
  auto contents = std::make_shared<RoomContents>(std::move(room), dims);
  return Tensor::deferred(dtype, std::move(dims), std::move(contents));
}

std::shared_ptr<Room> room_of(const Tensor& tensor) {
  const auto* contents = dynamic_cast<const RoomContents*>(tensor.contents().get());
  const bool is_value = contents != nullptr && contents->dims() == tensor.dims();
  return is_value ? contents->room() : nullptr;
}

}  // namespace redfuser
