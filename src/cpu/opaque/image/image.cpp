// Maxima of regions and deformable convolution.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/geometry.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

void store(Tensor& tensor, const ChargedVector<double>& values) {
  dispatch(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < values.size(); ++i) tensor.as<T>()[i] = saturated<T>(values[i]);
  });
}

// The image is zero around.
double bilinear_with_zeros(const double* plane, double y, double x, int64_t height, int64_t width) {
  if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) {
    return 0;
  }
  const double top = std::floor(y), left = std::floor(x);
  double sum = 0;
  for (int dy = 0; dy < 2; ++dy) {
    for (int dx = 0; dx < 2; ++dx) {
      const auto r = static_cast<int64_t>(top) + dy, c = static_cast<int64_t>(left) + dx;
      if (r < 0 || r >= height || c < 0 || c >= width) continue;
      const double v = dy == 0 ? 1 - (y - top) : y - top, h = dx == 0 ? 1 - (x - left) : x - left;
      sum += v * h * plane[r * width + c];
    }
  }
  return sum;
}

}  // namespace

// Boxes [image, left, top, right, bottom] count whole elements, the last ones included. A part of a
// box outside of the image is 0.
void run_max_roi_pool(OpaqueCall& call) {
  const Dims& in = call.dims(0);
  const ChargedVector<double> x = call.reals_of(0), rois = call.reals_of(1);
  const int64_t boxes = call.dims(1)[0], channels = in[1], height = in[2], width = in[3];
  const auto pooled = call.integers("pooled_shape", {});
  const double scale = call.real("spatial_scale", 1);
  if (call.dims(1)[1] != 5) call.fail("the boxes must be [R,5]");
  Tensor& y = call.allocate(0, {boxes, channels, pooled[0], pooled[1]});
  ChargedVector<double> out(static_cast<size_t>(y.size()));
  struct Span {
    int64_t begin, end;
  };
  // The range of part `i` of `parts` of the box from `first` to `last`.
  const auto part = [&](double first, double last, int64_t i, int64_t parts, int64_t size) {
    const double low = std::round(first * scale), high = std::round(last * scale);
    const double step = std::max(high - low + 1, 1.0) / static_cast<double>(parts);
    const auto at = [&](double position) {
      return static_cast<int64_t>(std::clamp(position + low, 0.0, static_cast<double>(size)));
    };
    return Span{at(std::floor(static_cast<double>(i) * step)),
                at(std::ceil(static_cast<double>(i + 1) * step))};
  };
  for (size_t o = 0; o < out.size(); ++o) {
    const auto at = static_cast<int64_t>(o);
    const int64_t j = at % pooled[1], i = at / pooled[1] % pooled[0];
    const int64_t c = at / (pooled[0] * pooled[1]) % channels;
    const double* box = rois.data() + at / (pooled[0] * pooled[1] * channels) * 5;
    if (!(box[0] >= 0 && box[0] < static_cast<double>(in[0]))) {
      call.fail(fmt::format("image {} of {}", box[0], in[0]));
    }
    if (!std::isfinite((box[1] + box[2] + box[3] + box[4]) * scale)) {
      call.fail("a box is not finite");
    }
    const Span rows = part(box[2], box[4], i, pooled[0], height);
    const Span columns = part(box[1], box[3], j, pooled[1], width);
    const double* plane = x.data() + (static_cast<int64_t>(box[0]) * channels + c) * height * width;
    if (rows.begin >= rows.end || columns.begin >= columns.end) continue;
    out[o] = -INFINITY;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      for (int64_t k = columns.begin; k < columns.end; ++k) {
        out[o] = std::max(out[o], plane[r * width + k]);
      }
    }
  }
  store(y, out);
}

void run_deform_conv(OpaqueCall& call) {
  const Dims &in = call.dims(0), &w = call.dims(1), &off = call.dims(2);
  const Geometry g(call, 2);
  const int64_t group = call.integer("group", 1), offset_group = call.integer("offset_group", 1);
  const int64_t batch = in[0], channels = in[1], height = in[2], width = in[3];
  const int64_t outputs = w[0], kernel_h = w[2], kernel_w = w[3], taps = kernel_h * kernel_w;
  const int64_t out_h = off[2], out_w = off[3];
  const bool fits = group > 0 && group <= outputs && offset_group > 0 && offset_group <= channels &&
                    channels == w[1] * group && outputs % group == 0 &&
                    channels % offset_group == 0 && off[0] == batch &&
                    off[1] == 2 * offset_group * taps;
  if (!fits) call.fail("input, weights and offsets do not fit each other");
  const auto positions = [&](int64_t size, int64_t kernel, size_t d) {
    return (size + g.pads[d] + g.pads[2 + d] - (kernel - 1) * g.dilations[d] - 1) / g.strides[d] +
           1;
  };
  if (out_h != positions(height, kernel_h, 0) || out_w != positions(width, kernel_w, 1)) {
    call.fail("the offsets' sizes are not those of the output");
  }
  const bool masked = call.has_input(4);
  if (masked && call.dims(4) != Dims{batch, offset_group * taps, out_h, out_w}) {
    call.fail("the mask does not fit the offsets");
  }
  const ChargedVector<double> x = call.reals_of(0), weights = call.reals_of(1),
                              offsets = call.reals_of(2);
  const ChargedVector<double> bias = call.has_input(3) ? call.reals_of(3) : ChargedVector<double>();
  const ChargedVector<double> mask = masked ? call.reals_of(4) : ChargedVector<double>();
  if (!bias.empty() && static_cast<int64_t>(bias.size()) != outputs) call.fail("the bias");
  Tensor& y = call.allocate(0, {batch, outputs, out_h, out_w});
  ChargedVector<double> out(static_cast<size_t>(y.size()));
  const int64_t per_group = channels / group, per_offset = channels / offset_group;
  const int64_t area = out_h * out_w;
  parallel_ranges(call.threads(), batch * area, 16, [&](int64_t begin, int64_t end) {
    ChargedVector<double> column(static_cast<size_t>(channels * taps));
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / area, at = p % area, row = at / out_w, col = at % out_w;
      for (int64_t c = 0; c < channels; ++c) {
        const int64_t og = c / per_offset;
        for (int64_t t = 0; t < taps; ++t) {
          const int64_t first = (n * offset_group + og) * taps + t;
          const double* delta = offsets.data() + 2 * first * area;
          const double v =
              static_cast<double>(row * g.strides[0] - g.pads[0] + t / kernel_w * g.dilations[0]) +
              delta[at];
          const double h =
              static_cast<double>(col * g.strides[1] - g.pads[1] + t % kernel_w * g.dilations[1]) +
              delta[area + at];
          double value = bilinear_with_zeros(x.data() + (n * channels + c) * height * width, v, h,
                                             height, width);
          if (masked) value *= mask[static_cast<size_t>(first * area + at)];
          column[static_cast<size_t>(c * taps + t)] = value;
        }
      }
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t channel = o / (outputs / group) * per_group;
        double sum = bias.empty() ? 0 : bias[static_cast<size_t>(o)];
        for (int64_t k = 0; k < per_group * taps; ++k) {
          sum += weights[static_cast<size_t>(o * per_group * taps + k)] *
                 column[static_cast<size_t>(channel * taps + k)];
        }
        out[static_cast<size_t>((n * outputs + o) * area + at)] = sum;
      }
    }
  });
  store(y, out);
}

}  // namespace redfuser::cpu
