#include "runtime/facts/step_bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/low_bit.h"
#include "io/element.h"

namespace redfuser::runtime {
namespace {

// The allowed error against fp64, relative to that of the unfused operators.
constexpr double kAllowedGrowth = 1.2;
constexpr double kUnits = 2;
constexpr int64_t kElementsPerEdge = 100;

Tensor as_doubles(const Tensor& tensor) {
  Tensor result(DType::Float64, tensor.dims());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.as<double>()[i] = is_low_bit_float(tensor.dtype())
                                 ? low_bit_value(tensor.dtype(), tensor.as<uint8_t>()[i])
                                 : io::element_as_double(tensor, i);
  }
  return result;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Bounds of each element from the reference values.
class Bounds {
 public:
  explicit Bounds(const ReferenceValues& values)
      : unfused_(as_doubles(values.unfused)),
        wide_(as_doubles(values.wide)),
        up_(as_doubles(values.up)),
        down_(as_doubles(values.down)) {}

  // The value closest to `value` that the wide evaluation allows.
  double nearest(int64_t i, double value) const {
    const double wide = wide_.as<double>()[i], unfused = unfused_.as<double>()[i];
    if (same(value, unfused)) return value;
    if (!std::isfinite(wide)) return same(value, wide) ? wide : unfused;
    if (!std::isfinite(value)) return wide;
    const double moved =
        std::max(distance(up_.as<double>()[i], wide), distance(down_.as<double>()[i], wide));
    return std::clamp(value, wide - moved, wide + moved);
  }

  // The largest error of the unfused operators.
  double unfused_error() const {
    double largest = 0;
    for (int64_t i = 0; i < wide_.size(); ++i) {
      const double wide = wide_.as<double>()[i], unfused = unfused_.as<double>()[i];
      if (!std::isfinite(wide) || !std::isfinite(unfused)) continue;
      const double moved =
          std::max(distance(up_.as<double>()[i], wide), distance(down_.as<double>()[i], wide));
      largest = std::max(largest, std::fabs(unfused - wide) - moved);
    }
    return largest;
  }

 private:
  static double distance(double a, double b) { return std::isfinite(a) ? std::fabs(a - b) : 0; }

  const Tensor unfused_, wide_, up_, down_;
};

}  // namespace

Comparison compare_with(const std::string& name, const Tensor& got, const ReferenceValues& expected,
                        const Tolerance& tolerance) {
  const Bounds bounds(expected);
  const bool floats = is_float(got.dtype());
  const Tensor numbers = as_doubles(got);
  Tensor nearest(DType::Float64, got.dims());
  for (int64_t i = 0; i < got.size(); ++i) {
    nearest.as<double>()[i] = bounds.nearest(i, numbers.as<double>()[i]);
  }
  Tolerance applied = tolerance;
  if (!floats) applied.relative = 0;
  applied.units = std::max(applied.units, kUnits);
  applied.error = kAllowedGrowth * bounds.unfused_error();
  return compare(name, floats ? got : numbers, nearest, applied);
}

Comparison compare_with(const std::string& name, const Tensor& got, const ReferenceValues& expected,
                        const Tensor& witness, const Tolerance& tolerance) {
  const Comparison comparison = compare_with(name, got, expected, tolerance);
  if (comparison.passed) return comparison;
  const int64_t edges = compare_with(name, witness, expected, tolerance).mismatches;
  if (edges > std::max<int64_t>(witness.size() / kElementsPerEdge, 1)) return comparison;
  ReferenceValues by_witness = expected;
  by_witness.unfused = witness;
  return compare_with(name, got, by_witness, tolerance);
}

}  // namespace redfuser::runtime
