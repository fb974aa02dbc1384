#include "cpu/opaque/image/integers/quantized_sums.h"

#include "cpu/machine/this_machine.h"

namespace redfuser::cpu {
IntegerQuantizeArgs QuantizedRows::of(const SumsTarget::Block& block,
                                      const SumsTarget::Place& place) const {
  IntegerQuantizeArgs q = each;
  // One parameter of all filters, or one of each.
  const auto from = [&](const auto& values, auto& first, int64_t& step) {
    step = values.size() == 1 ? 0 : 1;
    first = values.data() + block.filter * step;
  };
  from(scales, q.scales, q.scale_step);
  from(offsets, q.offsets, q.offset_step);
  q.rows = block.filters;
  q.count = block.positions;
  q.c = static_cast<const int32_t*>(place.data);
  q.c_stride = place.stride;
  return q;
}

SumsTarget::Place QuantizedSums::wide_place(int worker, const Block& block, int64_t stride) {
  Sums& own = workers_[static_cast<size_t>(worker)];
  const int64_t count = block.filters * stride;
  if (count > own.count) own = {scratch<int32_t>(count), count};
  return {own.data.get(), stride};
}

void QuantizedSums::done(int, const Block& block, const Place& place) {
  IntegerQuantizeArgs q = rows_.of(block, place);
  const int64_t at = (block.batch * filters_ + block.filter) * positions_ + block.position;
  q.out = y_ + at;
  q.out_stride = positions_;
  IntegerResidual residual;
  if (rest_.residual) {
    residual = *rest_.residual;
    residual.bytes += at;
    residual.stride = positions_;
    q.residual = &residual;
  }
  integer_kernels().quantize(q);
  for (int64_t row = 0; rest_.table != nullptr && row < q.rows; ++row) {
    uint8_t* codes = y_ + at + row * positions_;
    kernels().map_bytes(q.count, codes, rest_.table, codes);
  }
}

}  // namespace redfuser::cpu
