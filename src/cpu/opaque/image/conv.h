// Convolution as matrix products over blocks of output pixels.
#pragma once

#include "base/thread_pool.h"
#include "cpu/opaque/image/sums.h"
#include "cpu/opaque/image/window.h"

namespace redfuser::cpu {

// Shapes of one convolution: x [batch, channels, window.input], w [filters, channels / groups,
// window.kernel], y [batch, filters, window.output].
struct ConvShape {
  int64_t batch = 1, channels = 1, filters = 1, groups = 1;
  Window window;
};

// The columns of a one-element kernel that visits every pixel are the input itself.
bool is_pointwise(const Window& window);

// x * w + bias by matrix products; bias may be null. T is float or double.
template <typename T>
void convolve_columns(const ConvShape& shape, const T* x, const T* w, const T* bias,
                      SumsTarget& sums, ThreadPool& pool);

// The same, channel by channel where every group has one.
template <typename T>
void convolve(const ConvShape& shape, const T* x, const T* w, const T* bias, SumsTarget& sums,
              ThreadPool& pool);

// The same window with as few dimensions and as long lines as its layout allows: dimensions of one
// element move to the front, and a pointwise window visits one line of all pixels.
Window with_long_lines(const Window& window);

// Checks ranks and channel counts of inputs `x` and `w` of a Conv-like node.
ConvShape make_conv_shape(const OpaqueCall& call, int x, int w);
ConvShape make_conv_shape(const ops::NodeView& node, const Dims& x, const Dims& w);

}  // namespace redfuser::cpu
