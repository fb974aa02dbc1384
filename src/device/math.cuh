// Scalar functions with ONNX's results for special values.
#pragma once

#include "device/ptx.cuh"

template <typename T>
__device__ __forceinline__ bool is_nan(T x) {
  return x != x;
}

// NaN if either is NaN.
__device__ __forceinline__ float max_of(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ __forceinline__ float min_of(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
__device__ __forceinline__ double max_of(double a, double b) {
  return is_nan(a) ? a : is_nan(b) ? b : a > b ? a : b;
}
__device__ __forceinline__ double min_of(double a, double b) {
  return is_nan(a) ? a : is_nan(b) ? b : a < b ? a : b;
}
__device__ __forceinline__ long long max_of(long long a, long long b) { return a > b ? a : b; }
__device__ __forceinline__ long long min_of(long long a, long long b) { return a < b ? a : b; }
__device__ __forceinline__ unsigned long long max_of(unsigned long long a, unsigned long long b) {
  return a > b ? a : b;
}
__device__ __forceinline__ unsigned long long min_of(unsigned long long a, unsigned long long b) {
  return a < b ? a : b;
}
__device__ __forceinline__ bool max_of(bool a, bool b) { return a || b; }
__device__ __forceinline__ bool min_of(bool a, bool b) { return a && b; }

// e^x, for results that are rounded to 16 bits.
__device__ __forceinline__ float exp_fast(float x) { return ptx_exp2(x * 1.4426950408889634f); }

// Quotients by one divisor, for results that are rounded to 16 bits. The scale keeps the reciprocal
// of a denormal finite.
struct Divisor {
  float scale, reciprocal;
};
__device__ __forceinline__ Divisor divisor_of(float d) {
  const float scale = fabsf(d) < 0x1p-100f ? 0x1p28f : 1.0f;
  return {scale, 1.0f / (d * scale)};
}
__device__ __forceinline__ float divide(float x, const Divisor& d) {
  return x * d.scale * d.reciprocal;
}

// Exact quotients by one divisor: those of a division, but for quotients below 2^-100, which may be
// two units in the last place off. The divisor is scaled by a power of two to
// about one, and so are dividends. After Markstein, Computation of elementary functions on the IBM
// RISC System/6000 processor (1990).
union FloatBits {
  float value;
  unsigned bits;
};
struct ExactDivisor {
  float scale, divisor, reciprocal;
};
__device__ __forceinline__ ExactDivisor exact_divisor_of(float d) {
  constexpr int kOne = 253;  // the exponents of the scale and of a divisor in [1/2, 1)
  FloatBits size, scale;
  size.value = d;
  const int exponent = static_cast<int>(size.bits >> 23 & 255u);
  scale.bits = static_cast<unsigned>(exponent < kOne ? kOne - exponent : 1) << 23;
  const float divisor = d * scale.value;
  return {scale.value, divisor, 1.0f / divisor};
}
__device__ __forceinline__ float divide(float x, const ExactDivisor& d) {
  const float scaled = x * d.scale, near = scaled * d.reciprocal;
  const float rest = fmaf(-near, d.divisor, scaled), size = fabsf(rest);
  // Without a rest, or with an infinite one, the first quotient has the sign and the value.
  return size > 0 && size <= 0x1.fffffep127f ? fmaf(rest, d.reciprocal, near) : near;
}

// The low bits of an integer, as a signed number and as an unsigned one.
template <int Bits>
__device__ __forceinline__ long long narrow_signed(long long x) {
  return static_cast<long long>(static_cast<unsigned long long>(x) << (64 - Bits)) >> (64 - Bits);
}
template <int Bits>
__device__ __forceinline__ long long narrow_unsigned(long long x) {
  return x & ((1ll << Bits) - 1);
}

// Integer quotients; small operands use 32-bit division.
__device__ __forceinline__ long long trunc_div(long long a, long long b) {
  if (((a | b) >> 31) == 0) {
    return b == 0 ? 0 : static_cast<unsigned>(a) / static_cast<unsigned>(b);
  }
  return b == 0 ? 0 : b == -1 ? static_cast<long long>(0ull - a) : a / b;
}
__device__ __forceinline__ long long trunc_mod(long long a, long long b) {
  return b == 0 || b == -1 ? 0 : a - b * trunc_div(a, b);
}
__device__ __forceinline__ long long floor_div(long long a, long long b) {
  if (((a | b) >> 31) == 0) {
    return b == 0 ? 0 : static_cast<unsigned>(a) / static_cast<unsigned>(b);
  }
  if (b == 0) return 0;
  if (b == -1) return static_cast<long long>(0ull - a);
  const long long quotient = a / b;
  return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}
__device__ __forceinline__ long long floor_mod(long long a, long long b) {
  return b == 0 || b == -1 ? 0 : a - b * floor_div(a, b);
}
// Quotients and remainders of numbers from 0 to 2^31 - 1, whose range the compiler then knows.
__device__ __forceinline__ long long small_quotient(long long a, long long b) {
  return static_cast<unsigned>(a) / static_cast<unsigned>(b);
}
__device__ __forceinline__ long long small_remainder(long long a, long long b) {
  return static_cast<unsigned>(a) % static_cast<unsigned>(b);
}
// Those of floor_div and its like on unsigned words. Only two unsigned operands match; mixed
// operands convert to signed.
template <typename T>
struct Unsigned64 {};
template <>
struct Unsigned64<unsigned long long> {
  using Type = unsigned long long;
};
template <typename T>
__device__ __forceinline__ typename Unsigned64<T>::Type trunc_div(T a, T b) {
  return b == 0 ? 0 : a / b;
}
template <typename T>
__device__ __forceinline__ typename Unsigned64<T>::Type trunc_mod(T a, T b) {
  return b == 0 ? 0 : a % b;
}
template <typename T>
__device__ __forceinline__ typename Unsigned64<T>::Type floor_div(T a, T b) {
  return trunc_div(a, b);
}
template <typename T>
__device__ __forceinline__ typename Unsigned64<T>::Type floor_mod(T a, T b) {
  return trunc_mod(a, b);
}
__device__ __forceinline__ float floor_mod(float a, float b) {
  return b == 0 ? 0 : a - b * floorf(a / b);
}
__device__ __forceinline__ double floor_mod(double a, double b) {
  return b == 0 ? 0 : a - b * floor(a / b);
}

// Sums and products of tensor elements, which wrap around (those of indices do not overflow).
__device__ __forceinline__ long long wrapping_add(long long a, long long b) {
  return static_cast<long long>(static_cast<unsigned long long>(a) + b);
}
__device__ __forceinline__ long long wrapping_sub(long long a, long long b) {
  return static_cast<long long>(static_cast<unsigned long long>(a) - b);
}
__device__ __forceinline__ long long wrapping_mul(long long a, long long b) {
  return static_cast<long long>(static_cast<unsigned long long>(a) * b);
}
__device__ __forceinline__ long long abs_of(long long x) { return x < 0 ? wrapping_sub(0, x) : x; }

// Shifts in zeros; a shift by all bits or more gives 0.
template <typename T>
__device__ __forceinline__ T shift_left(T x, T by) {
  return by < 0 || by > 63 ? T(0) : static_cast<T>(static_cast<unsigned long long>(x) << by);
}
template <typename T>
__device__ __forceinline__ T shift_right(T x, T by) {
  return by < 0 || by > 63 ? T(0) : static_cast<T>(static_cast<unsigned long long>(x) >> by);
}

__device__ __forceinline__ unsigned long long power(unsigned long long base,
                                                    unsigned long long exponent) {
  unsigned long long result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= base;
    base *= base;
  }
  return result;
}
__device__ __forceinline__ long long power(long long base, long long exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  return static_cast<long long>(
      power(static_cast<unsigned long long>(base), static_cast<unsigned long long>(exponent)));
}

template <typename T>
__device__ __forceinline__ T sign_of(T x) {
  return is_nan(x) ? x : static_cast<T>((x > T(0)) - (x < T(0)));
}

// Truncation to integers. NaN and numbers out of range become the type's smallest value; for
// unsigned words, negative numbers wrap around, and 2^64 and more become 0.
template <typename T>
__device__ __forceinline__ long long to_int32(T x) {
  // Floats of that magnitude are integers.
  const bool above = sizeof(T) == 8 ? x > T(-2147483649.0) : x >= T(-2147483648.0);
  return above && x < T(2147483648.0) ? static_cast<int>(x) : -2147483648ll;
}
template <typename T>
__device__ __forceinline__ long long to_integer(T x) {
  return x >= T(-9223372036854775808.0) && x < T(9223372036854775808.0)
             ? static_cast<long long>(x)
             : -9223372036854775807ll - 1;
}
template <typename T>
__device__ __forceinline__ unsigned long long to_unsigned(T x) {
  if (!(x >= T(9223372036854775808.0))) return static_cast<unsigned long long>(to_integer(x));
  return x < T(18446744073709551616.0) ? static_cast<unsigned long long>(x) : 0;
}

// Functions for results that are rounded to 16 bits, with a relative error of about 1e-6. They have
// no branches, so that evaluations of neighbouring elements overlap.

// 1 - 2^(-x q(x)) with q fitted to -log2(erfc(x)) / x, and a linear function near 0, where that
// cancels. Absolute error 7.5e-7, relative error 4e-5.
__device__ __forceinline__ float erf_fast(float x) {
  const float size = fabsf(x);
  float q = fmaf(0.0029961006f, size, -0.029797267f);
  q = fmaf(q, size, 0.14893696f);
  q = fmaf(q, size, 0.9183765f);
  q = fmaf(q, size, 1.6279082f);
  const float far = copysignf(1.0f - ptx_exp2(-size * q), x);
  return size < 0.01f ? 1.128379167f * x : far;
}

// 1 - 2 / (e^2x + 1), and the Taylor series for small values.
__device__ __forceinline__ float tanh_fast(float x) {
  const float size = fabsf(x), square = x * x;
  const float far = copysignf(1.0f - 2.0f * ptx_reciprocal(exp_fast(2.0f * size) + 1.0f), x);
  float near = fmaf(62.0f / 2835, square, -17.0f / 315);
  near = fmaf(near, square, 2.0f / 15);
  near = fmaf(near, square, -1.0f / 3);
  near = fmaf(near, square, 1.0f) * x;
  return size < 0.4f ? near : far;
}
