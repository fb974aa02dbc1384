#include "base/tensors/blocks.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace redfuser {
namespace {

struct Block {
  const Dims &from, &to;
  size_t width;  // bytes of an element

  // Copies from axis `axis` on; the pointers are at index 0 of it.
  void copy(size_t axis, const char* source, char* target) const {
    int64_t from_step = 1, to_step = 1;
    bool whole = true;  // the axes below have the same sizes
    for (size_t i = axis + 1; i < from.size(); ++i) {
      from_step *= from[i];
      to_step *= to[i];
      whole = whole && from[i] == to[i];
    }
    const int64_t count = axis < from.size() ? std::min(from[axis], to[axis]) : 1;
    if (whole) {
      std::memcpy(target, source, static_cast<size_t>(count * from_step) * width);
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      copy(axis + 1, source + static_cast<size_t>(i * from_step) * width,
           target + static_cast<size_t>(i * to_step) * width);
    }
  }
};

}  // namespace

void copy_common(const Tensor& from, Tensor& to) {
  RF_CHECK(from.dtype() == to.dtype() && from.dims().size() == to.dims().size(),
           "a block of {} is copied to {}", describe(from), describe(to));
  if (from.bytes() == 0 || to.bytes() == 0) return;
  const Block block{from.dims(), to.dims(), size_of(from.dtype())};
  block.copy(0, static_cast<const char*>(from.data()), static_cast<char*>(to.mutable_data()));
}

Tensor resized(const Tensor& tensor, const Dims& dims) {
  Tensor result(tensor.dtype(), dims);
  const bool within = std::equal(dims.begin(), dims.end(), tensor.dims().begin(),
                                 tensor.dims().end(), std::less_equal<>());
  if (!within && result.bytes() > 0) std::memset(result.mutable_data(), 0, result.bytes());
  copy_common(tensor, result);
  return result;
}

Tensor part_below(const Tensor& tensor, const Dims& dims) {
  if (!leads(dims, tensor.dims())) return resized(tensor, dims);
  return Tensor::wrap(tensor.dtype(), dims, tensor.data(), std::make_shared<const Tensor>(tensor));
}

bool leads(const Dims& dims, const Dims& room) {
  size_t outermost = 0;
  while (outermost < dims.size() && dims[outermost] == 1) ++outermost;
  return outermost >= dims.size() ||
         std::equal(dims.begin() + static_cast<std::ptrdiff_t>(outermost) + 1, dims.end(),
                    room.begin() + static_cast<std::ptrdiff_t>(outermost) + 1);
}

}  // namespace redfuser
