#include "runtime/load/reorder.h"

#include "base/error.h"

namespace redfuser::runtime {

Tensor reordered(const Tensor& tensor, const codegen::MemoryOrder& order) {
  RF_CHECK(size_of(tensor.dtype()) == 2 && order.size() == tensor.dims().size(),
           "{} takes no order of {} dimensions", describe(tensor), order.size());
  const size_t rank = order.size();
  std::vector<int64_t> strides(rank, 1), sizes(rank), steps(rank), at(rank, 0);
  for (size_t i = rank - 1; i-- > 0;) strides[i] = strides[i + 1] * tensor.dims()[i + 1];
  for (size_t i = 0; i < rank; ++i) {
    sizes[i] = tensor.dims()[static_cast<size_t>(order[i])];
    steps[i] = strides[static_cast<size_t>(order[i])];
  }
  Tensor result(tensor.dtype(), tensor.dims());
  const auto* from = static_cast<const uint16_t*>(tensor.data());
  auto* to = static_cast<uint16_t*>(result.mutable_data());
  int64_t start = 0;
  for (int64_t written = 0; written < tensor.size(); written += sizes.back()) {
    for (int64_t i = 0; i < sizes.back(); ++i) *to++ = from[start + i * steps.back()];
    for (size_t i = rank - 1; i-- > 0;) {
      start += steps[i];
      if (++at[i] < sizes[i]) break;
      start -= sizes[i] * steps[i];
      at[i] = 0;
    }
  }
  return result;
}

}  // namespace redfuser::runtime
