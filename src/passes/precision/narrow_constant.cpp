#include "passes/precision/narrow_constant.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"

namespace redfuser::passes {
namespace {

uint16_t rounded(float value, DType to) {
  return to == DType::Float16 ? float_to_half(value) : float_to_bfloat16(value);
}

float widened(uint16_t bits, DType from) {
  return from == DType::Float16 ? half_to_float(bits) : bfloat16_to_float(bits);
}

// A mask's fill is added to scores or to another fill, so it must stay well within the range.
float headroom(DType to) { return to == DType::Float16 ? 0x1p14f : 0x1p126f; }

}  // namespace

NarrowFit narrow_fit(const Tensor& tensor, DType to) {
  bool nonzero = false, survives = false, whole = true, exact = true;
  const float* values = tensor.as<float>();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const float value = values[i];
    if (!std::isfinite(value)) continue;
    const float narrow = widened(rounded(value, to), to);
    if (std::isinf(narrow)) return NarrowFit::Overflows;
    nonzero |= value != 0;
    survives |= narrow != 0;
    whole &= value == std::nearbyint(value);
    exact &= value == narrow;
  }
  const bool fill =
      tensor.size() == 1 && std::isfinite(values[0]) && std::fabs(values[0]) > headroom(to);
  const bool flushed = nonzero && !survives, inexact = whole && !exact;
  return fill || flushed || inexact ? NarrowFit::Unfit : NarrowFit::Fits;
}

Tensor narrowed(const Tensor& tensor, DType to) {
  Tensor result(to, tensor.dims());
  std::transform(tensor.as<float>(), tensor.as<float>() + tensor.size(), result.as<uint16_t>(),
                 [to](float value) { return rounded(value, to); });
  return result;
}

double largest_finite(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double magnitude = std::fabs(static_cast<double>(tensor.as<float>()[i]));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

}  // namespace redfuser::passes
