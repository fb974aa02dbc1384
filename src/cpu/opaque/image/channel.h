// The layout of a channel for filters that slide over it.
#pragma once

#include <vector>

#include "cpu/opaque/image/window.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {

// A channel with its padding, split by line and column modulo the strides, so that each tap reads
// the elements of successive outputs side by side: [depth][line phase][column phase][plane].
struct PaddedChannel {
  ChannelArgs args;              // all but the data and the weights
  std::vector<int64_t> offsets;  // of each tap; `args` refers to them
  std::vector<TapRun> runs;      // likewise

  // UserError for a channel beyond the memory limit.
  PaddedChannel(const Window& window, int64_t filters);
  PaddedChannel(const PaddedChannel&) = delete;
  PaddedChannel& operator=(const PaddedChannel&) = delete;

  int64_t size() const { return args.depth * args.stride[1] * args.stride[2] * args.plane; }
  int64_t sums() const { return args.rows * args.pitch + kFilterSlack; }
};

}  // namespace redfuser::cpu
