#include "cpu/opaque/image/integers/filter_panels.h"

#include <algorithm>

#include "redfuser/memory_limit.h"

namespace redfuser::cpu {

IntegerPanels::IntegerPanels(const IntegerKernels& kernels, const Tensor& w, int64_t groups,
                             const ChannelGroups& channels)
    : columns_(kernels.columns),
      filters_(w.dims()[0] / groups),
      panels_((filters_ + columns_ - 1) / columns_),
      bytes_(kernels.panel_bytes(columns_, channels.depth())) {
  // They stay for later runs where they are constant, and so count for none.
  const MemoryLimit none(0);
  words_ = Tensor(DType::UInt8, {groups * panels_ * bytes_});
  sums_.resize(static_cast<size_t>(groups * panels_ * columns_));
  IntegerPackArgs args;
  args.offset = kernels.right_offset(w.dtype() == DType::Int8, true);
  const std::vector<uint8_t> ordered =
      by_channel_groups(w, channels, static_cast<uint8_t>(-args.offset));
  args.depth = channels.depth();
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t number = 0; number < panels_; ++number) {
      const int64_t filter = group * filters_ + first(number), at = group * panels_ + number;
      args.matrix = {ordered.data() + filter * args.depth,
                     static_cast<uint8_t>(w.dtype()),
                     1,
                     args.depth,
                     nullptr,
                     nullptr};
      args.count = filters(number);
      args.out = static_cast<char*>(words_.mutable_data()) + at * bytes_;
      args.sums = sums_.data() + at * columns_;
      kernels.pack_columns(args);
    }
  }
}

}  // namespace redfuser::cpu
