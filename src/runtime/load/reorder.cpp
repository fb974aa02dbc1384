#include "runtime/load/reorder.h"

#include <cstddef>
#include <cstring>
#include <functional>

#include "base/error.h"

namespace redfuser::runtime {
namespace {

// Calls move(memory, row_major) with the places of runs of elements: in memory they are adjacent,
// row-major they are `step` apart.
void each_run(const Tensor& tensor, const codegen::MemoryOrder& order,
              const std::function<void(int64_t memory, int64_t row_major, int64_t count,
                                       int64_t step)>& move) {
  const size_t width = size_of(tensor.dtype());
  RF_CHECK((width == 2 || width == 4) && order.size() == tensor.dims().size(),
           "{} takes no order of {} dimensions", describe(tensor), order.size());
  const size_t rank = order.size();
  std::vector<int64_t> strides(rank, 1), sizes(rank), steps(rank), at(rank, 0);
  for (size_t i = rank - 1; i-- > 0;) strides[i] = strides[i + 1] * tensor.dims()[i + 1];
  for (size_t i = 0; i < rank; ++i) {
    sizes[i] = tensor.dims()[static_cast<size_t>(order[i])];
    steps[i] = strides[static_cast<size_t>(order[i])];
  }
  int64_t start = 0;
  for (int64_t memory = 0; memory < tensor.size(); memory += sizes.back()) {
    move(memory, start, sizes.back(), steps.back());
    for (size_t i = rank - 1; i-- > 0;) {
      start += steps[i];
      if (++at[i] < sizes[i]) break;
      start -= sizes[i] * steps[i];
      at[i] = 0;
    }
  }
}

// Elements move from one tensor's memory to the other's, whole.
template <typename Word>
Tensor moved(const Tensor& tensor, const codegen::MemoryOrder& order, bool to_order) {
  Tensor result(tensor.dtype(), tensor.dims());
  const auto* from = static_cast<const Word*>(tensor.data());
  auto* to = static_cast<Word*>(result.mutable_data());
  each_run(tensor, order, [&](int64_t memory, int64_t row_major, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t ordered = memory + i, plain = row_major + i * step;
      to[to_order ? ordered : plain] = from[to_order ? plain : ordered];
    }
  });
  return result;
}

Tensor moved(const Tensor& tensor, const codegen::MemoryOrder& order, bool to_order) {
  return size_of(tensor.dtype()) == 2 ? moved<uint16_t>(tensor, order, to_order)
                                      : moved<uint32_t>(tensor, order, to_order);
}

}  // namespace

namespace {

// The rows of a matrix, with zeros behind each and below the last.
Tensor padded(const Tensor& tensor, const codegen::MemoryOrder& order) {
  RF_CHECK(order.size() == 2, "{} takes no padding", describe(tensor));
  Dims dims, sizes;
  for (const int dimension : order) {
    dims.push_back(tensor.dims()[static_cast<size_t>(dimension)]);
    sizes.push_back(codegen::size_in_vectors(dims.back(), tensor.dtype()));
  }
  Tensor result(tensor.dtype(), sizes);
  const size_t from = static_cast<size_t>(dims[1]) * size_of(tensor.dtype());
  const size_t to = static_cast<size_t>(sizes[1]) * size_of(tensor.dtype());
  auto* rows = static_cast<std::byte*>(result.mutable_data());
  std::memset(rows, 0, result.bytes());
  for (size_t i = 0; i < static_cast<size_t>(dims[0]); ++i) {
    std::memcpy(rows + i * to, static_cast<const std::byte*>(tensor.data()) + i * from, from);
  }
  return result;
}

}  // namespace

Tensor reordered(const Tensor& tensor, const codegen::MemoryOrder& order) {
  const Tensor result = moved(tensor, order, true);
  return order.padded ? padded(result, order) : result;
}

Tensor restored(const Tensor& tensor, const codegen::MemoryOrder& order) {
  RF_CHECK(!order.padded, "{} is restored from padded memory", describe(tensor));
  return moved(tensor, order, false);
}

}  // namespace redfuser::runtime
