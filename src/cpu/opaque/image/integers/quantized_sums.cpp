#include "cpu/opaque/image/integers/quantized_sums.h"

namespace redfuser::cpu {
namespace {

// The element of a parameter of all filters, or of each.
template <typename T>
T parameter(const std::vector<T>& values, int64_t filter) {
  return values.size() == 1 ? values[0] : values[static_cast<size_t>(filter)];
}

}  // namespace

IntegerQuantizeArgs QuantizedRows::of(int64_t filter) const {
  IntegerQuantizeArgs q = each;
  q.bias = static_cast<int32_t>(parameter(biases, filter));
  q.scale = parameter(scales, filter);
  q.offset = parameter(offsets, filter);
  return q;
}

SumsTarget::Place QuantizedSums::wide_place(int worker, const Block& block, int64_t stride) {
  Sums& own = workers_[static_cast<size_t>(worker)];
  const int64_t count = block.filters * stride;
  if (count > own.count) own = {scratch<int32_t>(count), count};
  return {own.data.get(), stride};
}

void QuantizedSums::done(int, const Block& block, const Place& place) {
  for (int64_t i = 0; i < block.filters; ++i) {
    const int64_t filter = block.filter + i;
    IntegerQuantizeArgs q = rows_.of(filter);
    q.count = block.positions;
    q.c = static_cast<const int32_t*>(place.data) + i * place.stride;
    q.out = y_ + (block.batch * filters_ + filter) * positions_ + block.position;
    integer_kernels().quantize(q);
  }
}

}  // namespace redfuser::cpu
