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

struct Tap {
  int64_t element;
  double weight;
};

double cubic_weight(double distance) {
  constexpr double a = -0.75;
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

std::vector<Tap> taps_of(const Line& line, double coordinate, const Sampling& s) {
  const auto n = static_cast<double>(line.size);
  double x = s.align_corners ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
  if (!std::isfinite(x)) x = line.padding == Padding::Zeros ? -2 : 0;
  if (s.interpolation == Interpolation::Nearest) {
    return {{line.element(line.padded(std::nearbyint(x))), 1}};
  }
  x = line.padded(x);
  const double floor = std::floor(x);
  if (s.interpolation == Interpolation::Linear) {
    return {{line.element(floor), 1 - (x - floor)}, {line.element(floor + 1), x - floor}};
  }
  std::vector<Tap> taps;
  for (int k = -1; k <= 2; ++k) {
    taps.push_back({line.element(floor + k), cubic_weight(x - floor - k)});
  }
  return taps;
}

// Elements and weights of a point: the product of its lines' taps.
std::vector<Tap> point_taps(const std::vector<std::vector<Tap>>& lines,
                            const std::vector<int64_t>& strides) {
  std::vector<Tap> taps{{0, 1}};
  for (size_t d = 0; d < lines.size(); ++d) {
    std::vector<Tap> wider;
    for (const Tap& tap : taps) {
      for (const Tap& next : lines[d]) {
        if (next.element < 0) continue;
        wider.push_back({tap.element + next.element * strides[d], tap.weight * next.weight});
      }
    }
    taps = std::move(wider);
  }
  return taps;
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
  dispatch(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    parallel_ranges(call.threads(), in[0] * points, 64, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        std::vector<std::vector<Tap>> lines;
        for (size_t d = 0; d < dimensions; ++d) {
          // Coordinates are in the order x, y, z: the last dimension first.
          const auto at = static_cast<size_t>(p) * dimensions + (dimensions - 1 - d);
          lines.push_back(taps_of(Line(spatial[d], sampling), grid[at], sampling));
        }
        const std::vector<Tap> taps = point_taps(lines, strides);
        const int64_t n = p / points;
        for (int64_t c = 0; c < channels; ++c) {
          const T* image = x.as<T>() + (n * channels + c) * plane;
          double sum = 0;
          for (const Tap& tap : taps) sum += tap.weight * static_cast<double>(image[tap.element]);
          y.as<T>()[(n * channels + c) * points + p % points] = saturated<T>(sum);
        }
      }
    });
  });
}

}  // namespace redfuser::cpu
