#include "runtime/cpu/stacks.h"

#include <cstring>

#include "base/error.h"

namespace redfuser::runtime {
namespace {

// Bytes of one element along `axis`, and the number of them one after another.
struct Blocks {
  size_t bytes = 0;
  int64_t count = 1;
};

Blocks blocks_of(const Tensor& part, int64_t axis) {
  Blocks blocks{size_of(part.dtype()), 1};
  const auto rank = static_cast<int64_t>(part.dims().size());
  for (int64_t k = 0; k < rank; ++k) {
    const int64_t size = part.dims()[static_cast<size_t>(k)];
    if (k < axis) blocks.count *= size;
    if (k >= axis) blocks.bytes *= static_cast<size_t>(size);
  }
  return blocks;
}

}  // namespace

Tensor slice_of(const Tensor& tensor, int64_t axis, int64_t at) {
  Dims dims = tensor.dims();
  const int64_t length = dims[static_cast<size_t>(axis)];
  dims.erase(dims.begin() + axis);
  Tensor slice = Tensor::wrap(tensor.dtype(), dims, nullptr, nullptr);
  const Blocks blocks = blocks_of(slice, axis);
  const auto* source =
      static_cast<const char*>(tensor.data()) + blocks.bytes * static_cast<size_t>(at);
  if (blocks.count == 1) {
    // The copy of the tensor keeps the bytes alive.
    return Tensor::wrap(tensor.dtype(), std::move(dims), source,
                        std::make_shared<const Tensor>(tensor));
  }
  slice = Tensor(tensor.dtype(), std::move(dims));
  auto* target = static_cast<char*>(slice.mutable_data());
  const size_t stride = blocks.bytes * static_cast<size_t>(length);
  for (int64_t b = 0; b < blocks.count && blocks.bytes > 0; ++b) {
    std::memcpy(target + blocks.bytes * static_cast<size_t>(b),
                source + stride * static_cast<size_t>(b), blocks.bytes);
  }
  return slice;
}

Tensor stack_of(const std::vector<Tensor>& parts, int64_t axis, bool backwards,
                const std::string& where) {
  const auto length = static_cast<int64_t>(parts.size());
  Dims dims = parts[0].dims();
  if (axis < 0) axis += static_cast<int64_t>(dims.size()) + 1;
  dims.insert(dims.begin() + axis, length);
  Tensor stack(parts[0].dtype(), std::move(dims));
  const Blocks blocks = blocks_of(parts[0], axis);
  auto* target = static_cast<char*>(stack.mutable_data());
  const size_t stride = blocks.bytes * static_cast<size_t>(length);
  for (int64_t p = 0; p < length; ++p) {
    const Tensor& part = parts[static_cast<size_t>(p)];
    if (part.dtype() != parts[0].dtype() || part.dims() != parts[0].dims()) {
      user_error("{}: an output is {} in iteration {}, but {} before", where, describe(part), p,
                 describe(parts[0]));
    }
    const int64_t place = backwards ? length - 1 - p : p;
    const auto* source = static_cast<const char*>(part.data());
    for (int64_t b = 0; b < blocks.count && blocks.bytes > 0; ++b) {
      std::memcpy(
          target + stride * static_cast<size_t>(b) + blocks.bytes * static_cast<size_t>(place),
          source + blocks.bytes * static_cast<size_t>(b), blocks.bytes);
    }
  }
  return stack;
}

}  // namespace redfuser::runtime
