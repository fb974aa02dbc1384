// The 16-bit floating types as storage: they convert to and from float, rounding to nearest even.
// Arithmetic happens in float. NaN stays NaN, subnormals are exact.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace redfuser {

// The value of the IEEE binary16 number `bits`.
inline float half_to_float(uint16_t bits) {
  // Read as binary32, these bits are the value times 2^-112.
  uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  uint32_t scaled = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  uint32_t special = magnitude | 0x7f800000u;  // Inf and NaN keep their fraction
  uint32_t value = (bits & 0x7c00u) == 0x7c00u ? special : scaled;
  return std::bit_cast<float>(value | static_cast<uint32_t>(bits & 0x8000u) << 16);
}

inline uint16_t float_to_half(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the unit in the last place is 2^-24, as for binary32 numbers in [0.5, 1).
  float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - 0x3f000000u;
  uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result;  // 65520 and above round to Inf
  result = magnitude > 0x7f800000u ? 0x7e00u : result;
  return static_cast<uint16_t>(result | ((bits >> 16) & 0x8000u));
}

inline float bfloat16_to_float(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

inline uint16_t float_to_bfloat16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

// The float next to `value` whose further rounding to 16 bits equals rounding `value` once (round
// to odd).
inline float double_to_float_odd(double value) {
  float nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::isinf(nearest)) return std::isinf(value) ? nearest : std::bit_cast<float>(bits - 1);
  if ((bits & 1u) != 0) return nearest;
  bool away = std::fabs(static_cast<double>(nearest)) < std::fabs(value);
  return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float value) : bits(float_to_half(value)) {}
  explicit Half(double value) : bits(float_to_half(double_to_float_odd(value))) {}
  operator float() const { return half_to_float(bits); }
};

struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) : bits(float_to_bfloat16(value)) {}
  explicit BFloat16(double value) : bits(float_to_bfloat16(double_to_float_odd(value))) {}
  operator float() const { return bfloat16_to_float(bits); }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace redfuser
