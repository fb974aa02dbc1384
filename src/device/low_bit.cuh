// The floating types of 8 bits and fewer as codes; src/base/low_bit.h has the same types for the
// host. A code stays a code in registers until it is converted to float.
#pragma once

#include "device/ptx.cuh"
#include "device/ptx_low_bit.cuh"
#include "device/types.cuh"

// A sign, an exponent with this bias, and a mantissa of this many bits. `Largest` is the code of
// the largest finite value, `Beyond` that of larger ones. OneZero: no negative zero; its code is
// the only NaN, and there are no infinities (fnuz).
template <int Mantissa, int Bias, unsigned Largest, unsigned Beyond, unsigned NotANumber,
          bool OneZero>
struct LowBitFormat {
  static constexpr int kMantissa = Mantissa, kBias = Bias;
  static constexpr unsigned kLargest = Largest, kBeyond = Beyond, kNotANumber = NotANumber;
  static constexpr bool kOneZero = OneZero;
};

template <class Format>
struct low_bit_t {
  unsigned char bits;
  low_bit_t() = default;
  explicit __device__ __forceinline__ low_bit_t(unsigned code)
      : bits(static_cast<unsigned char>(code)) {}
};

using E4M3FN = LowBitFormat<3, 7, 0x7e, 0x7f, 0x7f, false>;
using E4M3FNUZ = LowBitFormat<3, 8, 0x7f, 0x80, 0x80, true>;
using E5M2 = LowBitFormat<2, 15, 0x7b, 0x7c, 0x7f, false>;
using E5M2FNUZ = LowBitFormat<2, 16, 0x7f, 0x80, 0x80, true>;
struct E8M0 {};
struct E2M1 {};
using e4m3fn_t = low_bit_t<E4M3FN>;
using e4m3fnuz_t = low_bit_t<E4M3FNUZ>;
using e5m2_t = low_bit_t<E5M2>;
using e5m2fnuz_t = low_bit_t<E5M2FNUZ>;
using e8m0_t = low_bit_t<E8M0>;
using e2m1_t = low_bit_t<E2M1>;

template <class Format>
struct Element<low_bit_t<Format>> {
  using Value = low_bit_t<Format>;
  static __device__ __forceinline__ Value get(Value x) { return x; }
  static __device__ __forceinline__ Value put(Value x) { return x; }
};

// The exponent and mantissa are those of a float but for the bias, which the product corrects.
template <class Format>
__device__ __forceinline__ float to_float(low_bit_t<Format> x) {
  const unsigned rest = x.bits & 0x7fu, sign = (x.bits & 0x80u) << 24;
  const float scale = __uint_as_float(static_cast<unsigned>(254 - Format::kBias) << 23);
  const float size = __uint_as_float(rest << (23 - Format::kMantissa)) * scale;
  const unsigned word = sign | __float_as_uint(size);
  if (Format::kOneZero) return x.bits == Format::kNotANumber ? NAN_F : __uint_as_float(word);
  return rest > Format::kLargest ? NAN_F : __uint_as_float(word);
}
// The upper half of an fp16 number.
__device__ __forceinline__ float to_float(e5m2_t x) {
  return ptx_half_to_float(static_cast<unsigned short>(x.bits << 8));
}
#if __CUDA_ARCH__ >= 890
__device__ __forceinline__ float to_float(e4m3fn_t x) {
  return ptx_half_to_float(ptx_e4m3_to_half(x.bits));
}
#endif
// The exponent of a float; the least is a denormal.
__device__ __forceinline__ float to_float(e8m0_t x) {
  if (x.bits == 0xff) return NAN_F;
  return __uint_as_float(x.bits == 0 ? 1u << 22 : static_cast<unsigned>(x.bits) << 23);
}

// The scale takes the bias of a float to that of the type.
__device__ __forceinline__ float to_float(e2m1_t x) {
  const unsigned sign = (x.bits & 8u) << 28;
  const float size = __uint_as_float((x.bits & 7u) << 22) * 0x1p126f;
  return __uint_as_float(sign | __float_as_uint(size));
}

// The code nearest to x, ties to the even code. Numbers that are normal in the format are rounded
// as integers, where a carry raises the exponent. The others are added to a number whose ulp is the
// format's least value.
template <class Format, bool Saturated>
__device__ __forceinline__ low_bit_t<Format> rounded_code(float x) {
  constexpr int kDropped = 23 - Format::kMantissa;
  constexpr unsigned kLeastNormal = static_cast<unsigned>(128 - Format::kBias) << 23;
  constexpr unsigned kMagic = kLeastNormal + (static_cast<unsigned>(kDropped) << 23);
  const unsigned word = __float_as_uint(x), size = word & 0x7fffffffu;
  unsigned code = __float_as_uint(__uint_as_float(size) + __uint_as_float(kMagic)) - kMagic;
  if (size >= kLeastNormal) {
    const unsigned even = size >> kDropped & 1;
    code = (size + (1u << (kDropped - 1)) - 1 + even) >> kDropped;
    code -= static_cast<unsigned>(127 - Format::kBias) << Format::kMantissa;
  }
  if (size > 0x7f800000u) return low_bit_t<Format>(Format::kNotANumber);
  if (code > Format::kLargest) code = Saturated ? Format::kLargest : Format::kBeyond;
  if (Format::kOneZero && (code == 0 || code == Format::kBeyond)) return low_bit_t<Format>(code);
  return low_bit_t<Format>(code | (word >> 24 & 0x80u));
}

// As low_bit_code on the host; saturated, larger numbers become the largest.
template <class T>
struct ToLowBit;
template <class Format>
struct ToLowBit<low_bit_t<Format>> {
  static __device__ __forceinline__ low_bit_t<Format> of(float x) {
    return rounded_code<Format, false>(x);
  }
  static __device__ __forceinline__ low_bit_t<Format> saturated(float x) {
    return rounded_code<Format, true>(x);
  }
};
#if __CUDA_ARCH__ >= 890
// The instruction saturates. 464 is the tie above the largest value, which rounds to that.
template <>
struct ToLowBit<e4m3fn_t> {
  static __device__ __forceinline__ e4m3fn_t of(float x) {
    const unsigned code = ptx_float_to_e4m3(x);
    return e4m3fn_t(fabsf(x) > 464.0f ? code | 0x7f : code);
  }
  static __device__ __forceinline__ e4m3fn_t saturated(float x) {
    return e4m3fn_t(ptx_float_to_e4m3(x));
  }
};
// The tie above the largest value rounds to infinity.
template <>
struct ToLowBit<e5m2_t> {
  static __device__ __forceinline__ e5m2_t of(float x) {
    const unsigned code = ptx_float_to_e5m2(x);
    return e5m2_t(fabsf(x) >= 61440.0f ? (code & 0x80) | 0x7c : code);
  }
  static __device__ __forceinline__ e5m2_t saturated(float x) {
    return e5m2_t(ptx_float_to_e5m2(x));
  }
};
#endif
// Up to the next power of two.
template <>
struct ToLowBit<e8m0_t> {
  static __device__ __forceinline__ e8m0_t of(float x) {
    const unsigned word = __float_as_uint(x);
    if (word == 0x80000000u) return e8m0_t(0u);
    if (word >= 0x7f800000u) return e8m0_t(0xffu);
    const unsigned exponent = word >> 23, fraction = word & 0x7fffffu;
    const unsigned exact = exponent == 0 ? 1u << 22 : 0;
    return e8m0_t(exponent + (fraction > exact ? 1 : 0));
  }
};

// Codes are steps of a half up to 2, of one up to 4 and of two from there on. Larger numbers become
// the largest, NaN -0.
template <>
struct ToLowBit<e2m1_t> {
  static __device__ __forceinline__ e2m1_t of(float x) {
    if (x != x) return e2m1_t(8u);
    const float size = fminf(fabsf(x), 6.0f);
    const float steps = size < 2   ? rintf(size * 2)
                        : size < 4 ? rintf(size) + 2
                                   : rintf(size * 0.5f) + 4;
    return e2m1_t(static_cast<unsigned>(steps) | (__float_as_uint(x) >> 28 & 8u));
  }
  static __device__ __forceinline__ e2m1_t saturated(float x) { return of(x); }
};

template <class T>
__device__ __forceinline__ T to_low_bit(float x) {
  return ToLowBit<T>::of(x);
}
template <class T>
__device__ __forceinline__ T to_low_bit_saturated(float x) {
  return ToLowBit<T>::saturated(x);
}

// x / d for a code: the quotient rounded to float, but for those that are 0 or too large as codes
// either way. Markstein's division (IBM Journal of Research and Development 34(1), 1990): two
// corrections of the product with the correctly rounded reciprocal, which rows compute once.
__device__ __forceinline__ float code_quotient(float x, float d) {
  if (!(d >= 0x1p-60f && d <= 0x1p120f)) return x / d;
  const float reciprocal = __frcp_rn(d), product = x * reciprocal;
  const float near = fmaf(-fmaf(product, d, -x), reciprocal, product);
  const float quotient = fmaf(-fmaf(near, d, -x), reciprocal, near);
  return fabsf(product) <= 0x1p60f ? quotient : product;
}
