#include "cpu/opaque/image/channel.h"

#include "cpu/opaque/image/im2col.h"

namespace redfuser::cpu {
namespace {

// A tap outside of all earlier runs begins a run. The run continues with taps below it in its
// column, each one line of a plane after the one before.
std::vector<TapRun> runs_of(const Window& w, const std::vector<int64_t>& offsets, int64_t pitch) {
  std::vector<TapRun> runs;
  std::vector<bool> taken(offsets.size());
  const int64_t columns = w.kernel[2], plane = w.kernel[1] * columns;
  for (int64_t tap = 0; tap < count_of(w.kernel); ++tap) {
    if (taken[static_cast<size_t>(tap)]) continue;
    TapRun run{offsets[static_cast<size_t>(tap)], tap, 0, 1};
    int64_t last = tap;
    const int64_t end = tap / plane * plane + plane;
    for (int64_t next = tap + columns; next < end && run.count < kMostRun; next += columns) {
      const int64_t gap = offsets[static_cast<size_t>(next)] - offsets[static_cast<size_t>(last)];
      if (gap != pitch || (run.step != 0 && next - last != run.step)) continue;
      run.step = next - last, last = next, ++run.count;
      taken[static_cast<size_t>(next)] = true;
    }
    runs.push_back(run);
  }
  return runs;
}

}  // namespace

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
  runs = runs_of(w, offsets, args.pitch);
  args.runs = runs.data();
  args.run_count = static_cast<int64_t>(runs.size());
}

}  // namespace redfuser::cpu
