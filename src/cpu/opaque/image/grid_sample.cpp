// Samples of a tensor at the points of a grid.
#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "base/error.h"
#include "base/integers.h"
#include "cpu/opaque/opaque_kernels.h"

namespace redfuser::cpu {
namespace {

enum class Padding { Zeros, Border, Reflection };
enum class Interpolation { Nearest, Linear, Cubic };

struct Sampling {
  Padding padding = Padding::Zeros;
  Interpolation interpolation = Interpolation::Linear;
  bool align_corners = false;
};

Sampling sampling_of(const OpaqueCall& call) {
  Sampling s;
  const std::string mode = call.text("mode", "linear");
  if (mode == "nearest") {
    s.interpolation = Interpolation::Nearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    s.interpolation = Interpolation::Cubic;
  } else if (mode != "linear" && mode != "bilinear") {
    call.fail(fmt::format("mode \"{}\"", mode));
  }
  const std::string padding = call.text("padding_mode", "zeros");
  if (padding == "border") {
    s.padding = Padding::Border;
  } else if (padding == "reflection") {
    s.padding = Padding::Reflection;
  } else if (padding != "zeros") {
    call.fail(fmt::format("padding_mode \"{}\"", padding));
  }
  s.align_corners = call.integer("align_corners", 0) != 0;
  return s;
}

// One spatial dimension: its borders, and the padding beyond them.
struct Line {
  int64_t size;
  double low, high;
  Padding padding;

  Line(int64_t n, const Sampling& s)
      : size(n),
        low(s.align_corners ? 0 : -0.5),
        high(static_cast<double>(n) - (s.align_corners ? 1 : 0.5)),
        padding(s.padding) {}

  double reflected(double x) const {
    const double span = high - low;
    if (span <= 0) return low;
    const double distance = x < low ? low - x : x > high ? x - high : 0;
    if (distance == 0) return x;
    const double folds = std::floor(distance / span), rest = distance - folds * span;
    const bool even = std::fmod(folds, 2) == 0;
    return x < low ? (even ? low + rest : high - rest) : (even ? high - rest : low + rest);
  }

  double padded(double x) const {
    if (x >= low && x <= high) return x;
    if (padding == Padding::Border) return std::clamp(x, 0.0, static_cast<double>(size - 1));
    return padding == Padding::Reflection ? reflected(x) : x;
  }

  // The element that stands at a whole position; -1: zero.
  int64_t element(double at) const {
    if (padding == Padding::Border) at = std::clamp(at, 0.0, static_cast<double>(size - 1));
    if (padding == Padding::Reflection) at = std::trunc(reflected(at));
    if (!(at >= 0 && at <= static_cast<double>(size - 1))) return -1;
    return static_cast<int64_t>(at);
  }
};

constexpr size_t kMostTaps = 4;  // of a line

struct Tap {
  int64_t element;
  double weight;
};

// A line's taps that are elements.
struct LineTaps {
  Tap taps[kMostTaps];
  size_t count = 0;
  void add(int64_t element, double weight) {
    if (element >= 0) taps[count++] = {element, weight};
  }
};

double cubic_weight(double distance) {
  constexpr double a = -0.75;
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// std::floor without a call.
double floor_of(double x) {
  if (!(std::fabs(x) < 0x1p52)) return x;
  const auto towards_zero = static_cast<double>(static_cast<int64_t>(x));
  return towards_zero > x ? towards_zero - 1 : towards_zero;
}

LineTaps taps_of(const Line& line, double coordinate, const Sampling& s) {
  LineTaps taps;
  const auto n = static_cast<double>(line.size);
  double x = s.align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
  if (!std::isfinite(x)) x = line.padding == Padding::Zeros ? -2 : 0;
  if (s.interpolation == Interpolation::Nearest) {
    taps.add(line.element(line.padded(std::nearbyint(x))), 1);
    return taps;
  }
  x = line.padded(x);
  const double floor = floor_of(x);
  if (s.interpolation == Interpolation::Linear) {
    taps.add(line.element(floor), 1 - (x - floor));
    taps.add(line.element(floor + 1), x - floor);
    return taps;
  }
  for (int k = -1; k <= 2; ++k) taps.add(line.element(floor + k), cubic_weight(x - floor - k));
  return taps;
}

// Elements and weights of a point: the products of its lines' taps.
template <typename W>
struct PointTaps {
  ChargedVector<int64_t> elements;
  ChargedVector<W> weights;
  size_t count = 0;

  explicit PointTaps(size_t most) : elements(most), weights(most) {}

  void set(const std::vector<Line>& lines, const std::vector<int64_t>& strides, const double* at,
           const Sampling& sampling) {
    elements[0] = 0, weights[0] = 1, count = 1;
    for (size_t d = 0; d < lines.size(); ++d) {
      // Coordinates are in the order x, y, z: the last dimension first.
      const LineTaps next = taps_of(lines[d], at[lines.size() - 1 - d], sampling);
      // Downwards, so that the first factors are read before they are replaced.
      for (size_t i = count; i-- > 0;) {
        const int64_t element = elements[i];
        const W weight = weights[i];
        for (size_t k = 0; k < next.count; ++k) {
          elements[i * next.count + k] = element + next.taps[k].element * strides[d];
          weights[i * next.count + k] = weight * static_cast<W>(next.taps[k].weight);
        }
      }
      count *= next.count;
    }
  }
};

// The samples of one point in every channel, whose planes lie one after the other. `kCount`: the
// taps, where they are known.
template <size_t kCount = 0, typename W, typename T>
void sample_channels(const PointTaps<W>& taps, const T* image, int64_t plane, int64_t channels,
                     int64_t points, T* y) {
  if constexpr (kCount == 0) {
    if (taps.count == 4) return sample_channels<4>(taps, image, plane, channels, points, y);
    if (taps.count == 8) return sample_channels<8>(taps, image, plane, channels, points, y);
  }
  const size_t count = kCount == 0 ? taps.count : kCount;
  const int64_t* elements = taps.elements.data();
  const W* weights = taps.weights.data();
  for (int64_t c = 0; c < channels; ++c, image += plane, y += points) {
    W sum = 0;
    for (size_t i = 0; i < count; ++i) {
      sum += weights[i] * static_cast<W>(image[elements[i]]);
    }
    if constexpr (std::is_same_v<W, T>) {
      *y = sum;
    } else {
      *y = saturated<T>(static_cast<double>(sum));
    }
  }
}

}  // namespace

void run_grid_sample(OpaqueCall& call) {
  const Tensor& x = call.tensor(0);
  const Sampling sampling = sampling_of(call);
  const Dims &in = x.dims(), &grid_dims = call.dims(1);
  const size_t dimensions = in.size() - 2;
  if (grid_dims[0] != in[0] || grid_dims.back() != static_cast<int64_t>(dimensions)) {
    call.fail("the grid does not fit the input");
  }
  const ChargedVector<double> grid = call.reals_of(1);
  Dims dims{in[0], in[1]};
  dims.insert(dims.end(), grid_dims.begin() + 1, grid_dims.end() - 1);
  Tensor& y = call.allocate(0, dims);
  const Dims spatial(in.begin() + 2, in.end());
  const std::vector<int64_t> strides = strides_of(spatial);
  const int64_t plane = element_count(spatial), channels = in[1];
  const int64_t points = element_count({grid_dims.begin() + 1, grid_dims.end() - 1});
  if (plane == 0 && y.size() != 0) call.fail("the input has no elements to sample");
  const size_t each = sampling.interpolation == Interpolation::Nearest  ? 1
                      : sampling.interpolation == Interpolation::Linear ? 2
                                                                        : kMostTaps;
  size_t most = 1;
  for (size_t d = 0; d < dimensions; ++d) most *= each;
  std::vector<Line> lines;
  for (const int64_t size : spatial) lines.emplace_back(size, sampling);
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using W = std::conditional_t<std::is_same_v<T, float>, float, double>;
    parallel_ranges(call.threads(), in[0] * points, 64, [&](int64_t begin, int64_t end) {
      PointTaps<W> taps(most);
      for (int64_t p = begin; p < end; ++p) {
        taps.set(lines, strides, grid.data() + static_cast<size_t>(p) * dimensions, sampling);
        const int64_t n = p / points;
        sample_channels(taps, x.as<T>() + n * channels * plane, plane, channels, points,
                        y.as<T>() + n * channels * points + p % points);
      }
    });
  });
}

}  // namespace redfuser::cpu
