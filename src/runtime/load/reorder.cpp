#include "runtime/load/reorder.h"

#include <functional>

#include "base/error.h"

namespace redfuser::runtime {
namespace {

// Calls move(memory, row_major) with the places of runs of elements: in memory they are adjacent,
// row-major they are `step` apart.
void each_run(const Tensor& tensor, const codegen::MemoryOrder& order,
              const std::function<void(int64_t memory, int64_t row_major, int64_t count,
                                       int64_t step)>& move) {
  RF_CHECK(size_of(tensor.dtype()) == 2 && order.size() == tensor.dims().size(),
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

}  // namespace

Tensor reordered(const Tensor& tensor, const codegen::MemoryOrder& order) {
  Tensor result(tensor.dtype(), tensor.dims());
  const auto* from = static_cast<const uint16_t*>(tensor.data());
  auto* to = static_cast<uint16_t*>(result.mutable_data());
  each_run(tensor, order, [&](int64_t memory, int64_t row_major, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; ++i) to[memory + i] = from[row_major + i * step];
  });
  return result;
}

Tensor restored(const Tensor& tensor, const codegen::MemoryOrder& order) {
  Tensor result(tensor.dtype(), tensor.dims());
  const auto* from = static_cast<const uint16_t*>(tensor.data());
  auto* to = static_cast<uint16_t*>(result.mutable_data());
  each_run(tensor, order, [&](int64_t memory, int64_t row_major, int64_t count, int64_t step) {
    for (int64_t i = 0; i < count; ++i) to[row_major + i * step] = from[memory + i];
  });
  return result;
}

}  // namespace redfuser::runtime
