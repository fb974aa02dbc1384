#include "cpu/opaque/image/resample.h"

#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"

namespace redfuser::cpu {
namespace {

// The input position of output position `o`.
double source_position(const ResampleAxis& axis, const std::string& mode, int64_t o) {
  auto y = static_cast<double>(o), input = static_cast<double>(axis.input);
  double width = axis.scale * input;  // of the output, before rounding to a whole size
  if (mode == "half_pixel") return (y + 0.5) / axis.scale - 0.5;
  if (mode == "asymmetric") return y / axis.scale;
  if (mode == "align_corners") return width == 1 ? 0 : y * (input - 1) / (width - 1);
  if (mode == "pytorch_half_pixel") return width == 1 ? -0.5 : (y + 0.5) / axis.scale - 0.5;
  if (mode == "tf_half_pixel_for_nn") return (y + 0.5) / axis.scale;
  if (mode == "half_pixel_symmetric") {
    double adjustment = static_cast<double>(axis.output) / width;
    return input / 2 * (1 - adjustment) + (y + 0.5) / axis.scale - 0.5;
  }
  if (mode == "tf_crop_and_resize") {
    double span = (axis.end - axis.begin) * (input - 1);
    double offset = width == 1 ? span / 2 : y * span / (width - 1);
    return axis.begin * (input - 1) + offset;
  }
  user_error("[Resize] unknown coordinate_transformation_mode \"{}\"", mode);
}

int64_t nearest_index(double x, const std::string& mode) {
  if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  if (mode == "floor" || mode == "simple") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  user_error("[Resize] unknown nearest_mode \"{}\"", mode);
}

// The interpolation kernel at distance t: a tent, or Keys' cubic convolution (Keys, "Cubic
// convolution interpolation for digital image processing", 1981).
double kernel(double t, const ResampleOptions& options) {
  t = std::fabs(t);
  if (options.mode == "linear") return std::max(1 - t, 0.0);
  double a = options.cubic_a;
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

constexpr double kMaxTaps = 1 << 26;  // of a table: 1 GiB

void add_taps(ResampleTable& table, double x, double scale, int64_t input,
              const ResampleOptions& options) {
  // Antialiasing stretches the kernel over the inputs that fall on one output.
  double stretch = options.antialias ? std::min(scale, 1.0) : 1.0;
  double radius = (options.mode == "linear" ? 1 : 2) / stretch;
  if (!(static_cast<double>(table.weight.size()) + 2 * radius < kMaxTaps)) {
    user_error("[Resize] a scale of {} needs too many inputs for each output", scale);
  }
  // A whole position but for rounding is whole.
  if (std::fabs(x - std::nearbyint(x)) < 1e-12 * (1 + std::fabs(x))) x = std::nearbyint(x);
  auto first = static_cast<int64_t>(std::floor(x - radius)) + 1;
  auto last = static_cast<int64_t>(std::ceil(x + radius)) - 1;
  const size_t begin = table.weight.size();
  double total = 0;
  for (int64_t i = first; i <= last; ++i) {
    double weight = kernel((static_cast<double>(i) - x) * stretch, options);
    if (options.exclude_outside && (i < 0 || i >= input)) weight = 0;
    // A neighbour of weight 0 is ignored, even if it is infinite.
    if (weight == 0 && (i < last || table.weight.size() > begin)) continue;
    table.index.push_back(std::clamp<int64_t>(i, 0, input - 1));
    table.weight.push_back(weight);
    total += weight;
  }
  bool normalise = (options.antialias || options.exclude_outside) && total != 0;
  for (size_t i = begin; normalise && i < table.weight.size(); ++i) table.weight[i] /= total;
}

}  // namespace

ResampleTable make_resample_table(const ResampleAxis& axis, const ResampleOptions& options) {
  if (options.mode != "nearest" && options.mode != "linear" && options.mode != "cubic") {
    user_error("[Resize] unknown mode \"{}\"", options.mode);
  }
  ResampleTable table;
  for (int64_t o = 0; o < axis.output; ++o) {
    double x = source_position(axis, options.coordinates, o);
    bool outside = options.coordinates == "tf_crop_and_resize" &&
                   !(x >= 0 && x <= static_cast<double>(axis.input - 1));
    if (outside) {
      // No tap: the extrapolation value.
    } else if (options.mode == "nearest") {
      table.index.push_back(
          std::clamp<int64_t>(nearest_index(x, options.nearest), 0, axis.input - 1));
      table.weight.push_back(1);
    } else {
      add_taps(table, x, axis.scale, axis.input, options);
    }
    table.start.push_back(static_cast<int64_t>(table.index.size()));
  }
  return table;
}

namespace {

// A table with weights of the type that is computed in.
template <typename W>
struct Taps {
  std::vector<int64_t> start, index;
  std::vector<W> weight;

  explicit Taps(const ResampleTable& table)
      : start(table.start), index(table.index), weight(table.weight.begin(), table.weight.end()) {}
  int64_t output() const { return static_cast<int64_t>(start.size()) - 1; }
};

// Σ weights · rows of `count` elements.
template <typename S, typename W>
void add_rows(const S* x, int64_t stride, const int64_t* index, const W* weight, int64_t taps,
              int64_t count, W* y) {
  const S *a = x + index[0] * stride, *b = taps > 1 ? x + index[1] * stride : a;
  const W u = weight[0], v = taps > 1 ? weight[1] : W(0);
  if (taps == 1) {
    for (int64_t i = 0; i < count; ++i) y[i] = u * static_cast<W>(a[i]);
    return;
  }
  for (int64_t i = 0; i < count; ++i) y[i] = u * static_cast<W>(a[i]) + v * static_cast<W>(b[i]);
  int64_t t = 2;
  for (; t + 1 < taps; t += 2) {
    const S *c = x + index[t] * stride, *d = x + index[t + 1] * stride;
    const W p = weight[t], q = weight[t + 1];
    for (int64_t i = 0; i < count; ++i) {
      y[i] += p * static_cast<W>(c[i]) + q * static_cast<W>(d[i]);
    }
  }
  if (t == taps) return;
  const S* last = x + index[t] * stride;
  for (int64_t i = 0; i < count; ++i) y[i] += weight[t] * static_cast<W>(last[i]);
}

template <typename S, typename W>
void resample_rows(const AxisView& view, const Taps<W>& taps, const S* x, W* y, W outside,
                   ThreadPool& pool) {
  const int64_t output = taps.output(), inner = view.inner;
  parallel_ranges(pool, view.outer * output, 1 + (1 << 13) / (inner + 1),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      const S* source = x + row / output * view.size * inner;
                      const int64_t first = taps.start[row % output];
                      const int64_t count = taps.start[row % output + 1] - first;
                      W* target = y + row * inner;
                      if (count == 0) {
                        std::fill_n(target, inner, outside);
                      } else {
                        add_rows(source, inner, taps.index.data() + first,
                                 taps.weight.data() + first, count, inner, target);
                      }
                    }
                  });
}

// The same of few elements beside each other, along a line.
template <int kInner, typename S, typename W>
void resample_line(const Taps<W>& taps, const S* x, W outside, W* y) {
  const int64_t *index = taps.index.data(), *start = taps.start.data();
  const W* weight = taps.weight.data();
  const int64_t output = taps.output();
  for (int64_t o = 0; o < output; ++o, y += kInner) {
    const int64_t first = start[o], last = start[o + 1];
    W sums[kInner];
    if (last - first == 2) {
      const S *a = x + index[first] * kInner, *b = x + index[first + 1] * kInner;
      for (int i = 0; i < kInner; ++i) {
        sums[i] = weight[first] * static_cast<W>(a[i]) + weight[first + 1] * static_cast<W>(b[i]);
      }
    } else {
      for (int i = 0; i < kInner; ++i) sums[i] = first == last ? outside : W(0);
      for (int64_t t = first; t < last; ++t) {
        const S* a = x + index[t] * kInner;
        for (int i = 0; i < kInner; ++i) sums[i] += weight[t] * static_cast<W>(a[i]);
      }
    }
    for (int i = 0; i < kInner; ++i) y[i] = sums[i];
  }
}

template <int kInner, typename S, typename W>
void resample_lines(const AxisView& view, const Taps<W>& taps, const S* x, W* y, W outside,
                    ThreadPool& pool) {
  const int64_t from = view.size * kInner, to = taps.output() * kInner;
  parallel_ranges(pool, view.outer, 1 + (1 << 13) / (to + 1), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      resample_line<kInner>(taps, x + line * from, outside, y + line * to);
    }
  });
}

template <typename S, typename W>
void weigh(const AxisView& view, const ResampleTable& table, const S* x, W* y, W outside,
           ThreadPool& pool) {
  const Taps<W> taps(table);
  const auto along = view.inner == 1   ? resample_lines<1, S, W>
                     : view.inner == 2 ? resample_lines<2, S, W>
                     : view.inner == 3 ? resample_lines<3, S, W>
                     : view.inner == 4 ? resample_lines<4, S, W>
                                       : resample_rows<S, W>;
  along(view, taps, x, y, outside, pool);
}

// Every tap has weight one.
template <typename T>
void pick(const AxisView& view, const ResampleTable& table, const T* x, T* y, T outside,
          ThreadPool& pool) {
  const auto output = static_cast<int64_t>(table.start.size()) - 1;
  const int64_t grain = 1 + (1 << 13) / (view.inner + 1);
  parallel_ranges(pool, view.outer * output, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* source = x + row / output * view.size * view.inner;
      T* target = y + row * view.inner;
      const int64_t first = table.start[row % output];
      if (first == table.start[row % output + 1]) {
        std::fill_n(target, view.inner, outside);
      } else {
        std::copy_n(source + table.index[first] * view.inner, view.inner, target);
      }
    }
  });
}

}  // namespace

void resample(const AxisView& view, const ResampleTable& table, const Tensor& x, Tensor& y,
              double outside, bool nearest, ThreadPool& pool) {
  dispatch(x.dtype(), [&](auto from) {
    using S = typename decltype(from)::type;
    if (nearest) {
      pick(view, table, x.as<S>(), y.as<S>(), saturated<S>(outside), pool);
    } else if constexpr (std::is_same_v<S, float>) {
      weigh(view, table, x.as<S>(), y.as<S>(), static_cast<S>(outside), pool);
    } else if constexpr (!std::is_same_v<S, Half> && !std::is_same_v<S, BFloat16>) {
      weigh(view, table, x.as<S>(), y.as<double>(), outside, pool);
    } else {
      internal_error("resampling of {}", describe(x));
    }
  });
}

}  // namespace redfuser::cpu
