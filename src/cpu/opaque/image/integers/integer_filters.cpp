#include "cpu/opaque/image/integers/integer_filters.h"

#include "redfuser/memory_limit.h"

namespace redfuser::cpu {

PackedFilters::PackedFilters(const Tensor& w, const ChannelGroups& groups)
    : depth_(groups.depth()),
      offset_(integer_kernels().left_offset(w.dtype() == DType::Int8, true)) {
  // They stay for later runs where they are constant, and so count for none.
  const MemoryLimit none(0);
  const IntegerKernels& kernels = integer_kernels();
  const int64_t filters = w.dims()[0];
  // Channels that fill up the last group become 0 by the move.
  const auto fill = static_cast<uint8_t>(-offset_);
  std::vector<uint8_t> ordered(static_cast<size_t>(filters * depth_), fill);
  const auto* from = static_cast<const uint8_t*>(w.data());
  for (int64_t f = 0; f < filters; ++f) {
    for (int64_t channel = 0; channel < groups.channels; ++channel) {
      uint8_t* to = ordered.data() + f * depth_ + groups.first(channel);
      for (int64_t tap = 0; tap < groups.taps; ++tap) to[tap * groups.size] = *from++;
    }
  }
  rows_ = Tensor(DType::UInt8, {filters * kernels.row_bytes(depth_)});
  sums_.resize(static_cast<size_t>(filters));
  IntegerPackArgs args;
  args.matrix = {ordered.data(), static_cast<uint8_t>(w.dtype()), depth_, 1, nullptr, nullptr};
  args.count = filters;
  args.depth = depth_;
  args.offset = offset_;
  args.out = rows_.mutable_data();
  args.sums = sums_.data();
  kernels.pack_rows(args);
}

}  // namespace redfuser::cpu
