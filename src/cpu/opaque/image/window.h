// The sliding window of convolutions and pools, always in three spatial dimensions (leading ones
// have size 1 and kernel 1).
#pragma once

#include <array>
#include <span>

#include "cpu/opaque/opaque.h"

namespace redfuser::cpu {

using Size3 = std::array<int64_t, 3>;
inline int64_t count_of(const Size3& size) { return size[0] * size[1] * size[2]; }

struct Window {
  int rank = 0;  // spatial dimensions that the operator has
  Size3 input{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1};
  Size3 pad_begin{0, 0, 0}, pad_end{0, 0, 0};
  Size3 output{1, 1, 1};

  // The last `rank` sizes of `size`, after `batch` and `channels`.
  Dims dims(int64_t batch, int64_t channels, const Size3& size) const;
};

// Reads strides, dilations, pads, auto_pad and ceil_mode, and computes the output sizes.
Window make_window(const ops::NodeView& node, std::span<const int64_t> input,
                   std::span<const int64_t> kernel);

// The same for a transposed convolution (output_padding, output_shape): `input` has the sizes of
// the operator's input; pads are cropped from its output.
Window make_transposed_window(const ops::NodeView& node, std::span<const int64_t> input,
                              std::span<const int64_t> kernel);

}  // namespace redfuser::cpu
