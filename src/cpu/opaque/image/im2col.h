// The columns of a convolution (im2col): the inputs of its kernel taps, laid out for a matrix
// product.
#pragma once

#include "cpu/opaque/image/window.h"

namespace redfuser::cpu {

// Calls body(index, offset) for every kernel tap in row-major order; `offset` is the tap's input
// position for output position 0.
template <typename Body>
void for_each_tap(const Window& w, const Body& body) {
  int64_t index = 0;
  for (int64_t d = 0; d < w.kernel[0]; ++d) {
    for (int64_t h = 0; h < w.kernel[1]; ++h) {
      for (int64_t c = 0; c < w.kernel[2]; ++c) {
        body(index++, Size3{d * w.dilation[0] - w.pad_begin[0], h * w.dilation[1] - w.pad_begin[1],
                            c * w.dilation[2] - w.pad_begin[2]});
      }
    }
  }
}

// columns[tap, pixel - begin] for the output pixels [begin, end) of one channel's plane; rows are
// `ld` elements apart. `padding` where a tap is outside the input. T is float, double or uint8_t.
template <typename T>
void gather_columns(const Window& w, const T* plane, int64_t begin, int64_t end, T* columns,
                    int64_t ld, T padding = T(0));

}  // namespace redfuser::cpu
