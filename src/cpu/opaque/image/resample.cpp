#include "cpu/opaque/image/resample.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

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
  auto first = static_cast<int64_t>(std::floor(x - radius)) + 1;
  auto last = static_cast<int64_t>(std::ceil(x + radius)) - 1;
  size_t begin = table.weight.size();
  double total = 0;
  for (int64_t i = first; i <= last; ++i) {
    double weight = kernel((static_cast<double>(i) - x) * stretch, options);
    if (options.exclude_outside && (i < 0 || i >= input)) weight = 0;
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

}  // namespace redfuser::cpu
