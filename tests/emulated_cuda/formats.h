// Floats of 16 and 8 bits, alone and in pairs.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

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
// A result that was rounded to the nearest, rounded to odd instead: a later rounding to fewer bits
// is then that of the exact number, which is `error` above it.
template <class Float>
Float rounded_to_odd(Float nearest, Float error) {
  using Bits = std::conditional_t<sizeof(Float) == 8, uint64_t, uint32_t>;
  const bool odd = (std::bit_cast<Bits>(nearest) & 1) != 0;
  if (odd || !(error != 0) || !std::isfinite(nearest)) return nearest;
  const Float limit = std::numeric_limits<Float>::infinity();
  return std::nextafter(nearest, error > 0 ? limit : -limit);
}
// a · b + c of halves or bfloats, whose products are exact in fp64, rounded once.
template <class Format>
unsigned fma_parts(unsigned a, unsigned b, unsigned c) {
  const auto sum = [&](int i) {
    const double product = static_cast<double>(part<Format>(a, i)) * part<Format>(b, i);
    const double term = part<Format>(c, i), nearest = product + term;
    const double back = nearest - product;
    const double wide = rounded_to_odd(nearest, (product - (nearest - back)) + (term - back));
    const auto narrow = static_cast<float>(wide);
    return rounded_to_odd(narrow, static_cast<float>(wide - static_cast<double>(narrow)));
  };
  return pack<Format>(sum(0), sum(1));
}

// The number of a code with so many exponent bits; 4: E4M3FN, 5: finite numbers of E5M2.
template <int ExponentBits>
float byte_to_float(unsigned char code) {
  constexpr int kMantissa = 7 - ExponentBits, kBias = (1 << (ExponentBits - 1)) - 1;
  if (ExponentBits == 4 && (code & 0x7f) == 0x7f) return std::nanf("");
  const int exponent = code >> kMantissa & ((1 << ExponentBits) - 1);
  const int mantissa = code & ((1 << kMantissa) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << kMantissa);
  const float size =
      std::ldexp(static_cast<float>(whole), (exponent == 0 ? 1 : exponent) - kBias - kMantissa);
  return (code & 0x80) != 0 ? -size : size;
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
