#include "base/low_bit.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace redfuser {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Format {
  int exponent_bits, mantissa_bits, bias;
  bool infinities;  // the top exponent encodes infinity and NaN, as in IEEE 754
  bool one_zero;    // no negative zero; its code is the only NaN (fnuz)
  int largest;      // the code of the largest finite value
  int beyond;       // the code of larger values
  int not_a_number;

  int sign_bit() const { return 1 << (exponent_bits + mantissa_bits); }
};

constexpr Format kE4M3FN{4, 3, 7, false, false, 0x7e, 0x7f, 0x7f};
constexpr Format kE4M3FNUZ{4, 3, 8, false, true, 0x7f, 0x80, 0x80};
constexpr Format kE5M2{5, 2, 15, true, false, 0x7b, 0x7c, 0x7f};
constexpr Format kE5M2FNUZ{5, 2, 16, false, true, 0x7f, 0x80, 0x80};
constexpr Format kE2M1{2, 1, 1, false, false, 0x7, 0x7, 0x8};
constexpr int kScaleBias = 127, kScaleNaN = 255;

const Format& format_of(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3FN:
      return kE4M3FN;
    case DType::Float8E4M3FNUZ:
      return kE4M3FNUZ;
    case DType::Float8E5M2:
      return kE5M2;
    case DType::Float8E5M2FNUZ:
      return kE5M2FNUZ;
    case DType::Float4E2M1:
      return kE2M1;
    default:
      internal_error("{} is no low-bit floating type", name_of(dtype));
  }
}

// The value of a code without its sign.
float magnitude_of(const Format& f, int code) {
  const int exponent = code >> f.mantissa_bits, mantissa = code & ((1 << f.mantissa_bits) - 1);
  const float fraction = std::ldexp(static_cast<float>(mantissa), -f.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - f.bias)
                       : std::ldexp(1 + fraction, exponent - f.bias);
}

uint8_t scale_code(float value) {
  if (std::isnan(value) || value < 0 || std::isinf(value)) return kScaleNaN;
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  if (fraction == 0) return 0;
  const int code = exponent + kScaleBias - (fraction == 0.5f ? 1 : 0);
  return static_cast<uint8_t>(code < 0 ? 0 : code > 254 ? kScaleNaN : code);
}

// Codes without sign have the order of their values. The last binade continues beyond the largest
// value, which decides where rounding overflows.
int nearest_code(const Format& f, float magnitude) {
  int low = 0, high = f.largest + 1;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (magnitude_of(f, middle) <= magnitude ? low : high) = middle;
  }
  const float below = magnitude - magnitude_of(f, low), above = magnitude_of(f, high) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  const int code = up ? high : low;
  return code > f.largest ? f.beyond : code;
}

}  // namespace

float low_bit_value(DType dtype, uint8_t code) {
  if (dtype == DType::Float8E8M0) {
    return code == kScaleNaN ? kNaN : std::ldexp(1.0f, code - kScaleBias);
  }
  const Format& f = format_of(dtype);
  const bool negative = (code & f.sign_bit()) != 0;
  const int rest = code & (f.sign_bit() - 1);
  if (f.one_zero && negative && rest == 0) return kNaN;
  if (f.infinities && rest > f.largest) {
    return rest != f.beyond ? kNaN : negative ? -kInfinity : kInfinity;
  }
  if (rest > f.largest) return kNaN;
  return negative ? -magnitude_of(f, rest) : magnitude_of(f, rest);
}

uint8_t low_bit_code(DType dtype, float value) {
  if (dtype == DType::Float8E8M0) return scale_code(value);
  const Format& f = format_of(dtype);
  if (std::isnan(value)) return static_cast<uint8_t>(f.not_a_number);
  const int code = std::isinf(value) ? f.beyond : nearest_code(f, std::fabs(value));
  if (f.one_zero && (code == 0 || code == f.not_a_number)) return static_cast<uint8_t>(code);
  return static_cast<uint8_t>(std::signbit(value) ? code | f.sign_bit() : code);
}

float low_bit_maximum(DType dtype) {
  if (dtype == DType::Float8E8M0) return std::ldexp(1.0f, 254 - kScaleBias);
  const Format& f = format_of(dtype);
  return magnitude_of(f, f.largest);
}

}  // namespace redfuser
