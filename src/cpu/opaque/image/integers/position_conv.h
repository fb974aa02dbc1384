// Convolutions of bytes by positions of the image against panels of filters.
#pragma once

#include "cpu/opaque/image/conv.h"
#include "cpu/opaque/image/integers/filter_panels.h"
#include "cpu/opaque/image/integers/integer_lines.h"
#include "cpu/opaque/image/sums.h"

namespace redfuser::cpu {

// Whether it takes less time than positions in lanes, which are also those of the padding between
// lines: the sums are transposed, and few filters fill lanes in part.
bool gains_by_positions(const IntegerKernels& kernels, const ConvShape& shape);

// Of the bytes at `image` [batch, channels, ...]: Σ (x − zero) · w. The kernels take unsigned
// bytes, which `flip` makes of signed ones: 0 or 128.
struct PositionConvolution {
  const IntegerKernels& kernels;
  const ConvShape& shape;
  const ChannelGroups& groups;
  const IntegerPanels& panels;
  const uint8_t* image;
  int64_t zero, flip;

  void run(SumsTarget& target, ThreadPool& pool) const;
};

}  // namespace redfuser::cpu
