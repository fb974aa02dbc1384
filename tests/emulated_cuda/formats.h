// Floats of 16 and 8 bits, alone and in pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace emulated {

inline float half_to_float(unsigned short bits) {
  return static_cast<float>(std::bit_cast<_Float16>(bits));
}
inline unsigned short float_to_half(float x) {
  return std::bit_cast<unsigned short>(static_cast<_Float16>(x));
}
inline float bfloat_to_float(unsigned short bits) {
  return std::bit_cast<float>(static_cast<unsigned>(bits) << 16);
}
inline unsigned short float_to_bfloat(float x) {
  const auto bits = std::bit_cast<unsigned>(x);
  if (x != x) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float flushed(float x) { return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x; }

// Halves of a word.
struct Half {
  static float get(unsigned short bits) { return half_to_float(bits); }
  static unsigned short put(float x) { return float_to_half(x); }
};
struct Bfloat {
  static float get(unsigned short bits) { return bfloat_to_float(bits); }
  static unsigned short put(float x) { return float_to_bfloat(x); }
};
template <class Format>
float part(unsigned word, int i) {
  return Format::get(static_cast<unsigned short>(word >> 16 * i));
}
template <class Format>
unsigned pack(float low, float high) {
  return static_cast<unsigned>(Format::put(high)) << 16 | Format::put(low);
}
template <class Format>
unsigned fma_parts(unsigned a, unsigned b, unsigned c) {
  const auto sum = [&](int i) {
    const double exact = static_cast<double>(part<Format>(a, i)) * part<Format>(b, i);
    return static_cast<float>(exact + part<Format>(c, i));
  };
  return pack<Format>(sum(0), sum(1));
}

// The code of a format with so many exponent bits, saturated.
template <int ExponentBits>
unsigned code_of_byte(float x) {
  constexpr int kMantissa = 7 - ExponentBits, kBias = (1 << (ExponentBits - 1)) - 1;
  const unsigned sign = std::signbit(x) ? 0x80 : 0;
  if (x != x) return 0x7f;
  if (x == 0) return sign;
  const float largest = ExponentBits == 4 ? 448.0f : 57344.0f;
  const float size = std::min(std::fabs(x), largest);
  int exponent = 0;
  std::frexp(size, &exponent);
  const int least = std::max(exponent - 1, 1 - kBias);
  const auto steps = static_cast<unsigned>(
      std::nearbyint(std::ldexp(static_cast<double>(size), kMantissa - least)));
  const unsigned code = (static_cast<unsigned>(least + kBias - 1) << kMantissa) + steps;
  const unsigned most = ExponentBits == 4 ? 0x7e : 0x7b;
  return sign | std::min(code, most);
}

}  // namespace emulated
