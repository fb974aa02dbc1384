#include "cpu/opaque/image/channel.h"

#include "cpu/opaque/image/im2col.h"

namespace redfuser::cpu {

PaddedChannel::PaddedChannel(const Window& w, int64_t filters) {
  Size3 span;
  for (size_t i = 0; i < 3; ++i) {
    span[i] = (w.output[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    args.input[i] = w.input[i];
    args.output[i] = w.output[i];
    args.stride[i] = w.stride[i];
    args.pad[i] = w.pad_begin[i];
  }
  args.filters = filters;
  args.taps = count_of(w.kernel);
  args.depth = span[0];
  args.rows = (span[1] + w.stride[1] - 1) / w.stride[1];
  args.pitch = (span[2] + w.stride[2] - 1) / w.stride[2];
  require_memory(element_count({args.rows, args.pitch}), 1);
  args.plane = args.rows * args.pitch + kFilterSlack;
  require_memory(element_count({args.depth, args.stride[1], args.stride[2], args.plane}), 1);
  for_each_tap(w, [&](int64_t, const Size3& tap) {
    const int64_t d = tap[0] + w.pad_begin[0], h = tap[1] + w.pad_begin[1],
                  c = tap[2] + w.pad_begin[2];
    const int64_t phase = (d * w.stride[1] + h % w.stride[1]) * w.stride[2] + c % w.stride[2];
    offsets.push_back(phase * args.plane + h / w.stride[1] * args.pitch + c / w.stride[2]);
  });
  args.offsets = offsets.data();
}

}  // namespace redfuser::cpu
