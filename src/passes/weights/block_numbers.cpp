#include "passes/weights/block_numbers.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"

namespace redfuser::passes {
namespace {

// Adding `offset` makes unsigned numbers of so many bits of signed ones.
struct Range {
  int bits, offset;
};
constexpr Range kRanges[] = {{4, 0}, {4, 8}, {8, 0}, {8, 128}};

// Rounded to the type.
float as_number(float x, DType dtype) {
  if (dtype == DType::Float16) return half_to_float(float_to_half(x));
  return dtype == DType::BFloat16 ? bfloat16_to_float(float_to_bfloat16(x)) : x;
}

}  // namespace

bool set_codes(ir::WeightCodes& codes, const Tensor& integers, const Tensor& zeros) {
  const auto *numbers = integers.as<int32_t>(), *numbers_end = numbers + integers.size();
  const auto *points = zeros.as<float>(), *points_end = points + zeros.size();
  const auto [low, high] = std::minmax_element(numbers, numbers_end);
  const auto [low_zero, high_zero] = std::minmax_element(points, points_end);
  if (!std::all_of(points, points_end, [](float x) { return x == std::nearbyint(x); })) {
    return false;
  }
  const auto* range = std::find_if(std::begin(kRanges), std::end(kRanges), [&](const Range& r) {
    const int most = (1 << r.bits) - 1;
    const auto inside = [&](double x) { return x + r.offset >= 0 && x + r.offset <= most; };
    return inside(*low) && inside(*high) && inside(*low_zero) && inside(*high_zero);
  });
  if (range == std::end(kRanges)) return false;
  codes.bits = range->bits;
  codes.codes = Tensor(DType::UInt8, {codes.lines, codes.depth});
  auto* to = codes.codes.as<uint8_t>();
  std::transform(numbers, numbers_end, to,
                 [&](int32_t x) { return static_cast<uint8_t>(x + range->offset); });
  codes.zero = static_cast<int>(*low_zero) + range->offset;
  if (*low_zero == *high_zero) return true;
  codes.zeros = Tensor(DType::UInt8, {codes.lines, codes.blocks()});
  std::transform(points, points_end, codes.zeros.as<uint8_t>(), [&](float x) {
    return static_cast<uint8_t>(static_cast<int>(x) + range->offset);
  });
  return true;
}

bool set_scales(ir::WeightCodes& codes, const Tensor& scales, DType dtype) {
  codes.scales = scales;
  const float* numbers = scales.as<float>();
  return std::all_of(numbers, numbers + scales.size(),
                     [&](float x) { return std::isfinite(x) && x == as_number(x, dtype); });
}

bool gives(const ir::WeightCodes& codes, const Tensor& constant) {
  const DType dtype = constant.dtype();
  const auto* stored = static_cast<const uint16_t*>(constant.data());
  const auto element = [&](int64_t at) {
    if (dtype == DType::Float32) return constant.as<float>()[at];
    return dtype == DType::Float16 ? half_to_float(stored[at]) : bfloat16_to_float(stored[at]);
  };
  const bool across = codes.depth_axis == 0;
  for (int64_t line = 0; line < codes.lines; ++line) {
    const uint8_t* const row = codes.codes.as<uint8_t>() + line * codes.depth;
    for (int64_t k = 0; k < codes.depth; ++k) {
      const int64_t block = line * codes.blocks() + k / codes.block;
      const int zero = codes.zeros.defined() ? codes.zeros.as<uint8_t>()[block] : codes.zero;
      const float number = static_cast<float>(row[k] - zero) * codes.scales.as<float>()[block];
      const int64_t at = across ? k * codes.lines + line : line * codes.depth + k;
      if (as_number(number, dtype) != element(at)) return false;
    }
  }
  return true;
}

}  // namespace redfuser::passes
