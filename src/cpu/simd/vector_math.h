// Elementary functions as branch-free code that a compiler turns into vector code. Errors are
// about 1 to 2 units in the last place; NaN propagates and infinities are exact.
//
// Polynomials are near-minimax fits of this project's own on the stated intervals.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "cpu/simd/isa.h"
#include "cpu/simd/tanh_table.h"

namespace redfuser::cpu::RF_ISA {

RF_INLINE int32_t bits_of(float x) {
  int32_t b;
  __builtin_memcpy(&b, &x, 4);
  return b;
}
RF_INLINE float float_of(int32_t b) {
  float x;
  __builtin_memcpy(&x, &b, 4);
  return x;
}
RF_INLINE int64_t bits_of(double x) {
  int64_t b;
  __builtin_memcpy(&b, &x, 8);
  return b;
}
RF_INLINE double double_of(int64_t b) {
  double x;
  __builtin_memcpy(&x, &b, 8);
  return x;
}

RF_INLINE Vector<int32_t> bits_of(Vector<float> x) {
  Vector<int32_t> b;
  __builtin_memcpy(&b, &x, sizeof(b));
  return b;
}
RF_INLINE Vector<float> float_of(Vector<int32_t> b) {
  Vector<float> x;
  __builtin_memcpy(&x, &b, sizeof(x));
  return x;
}

// 1.5·2^23 + 254: adding it rounds to an integer n, and leaves n + 254 in the low bits.
inline constexpr float kExponentMagic = 12583166.0f;

// p · 2^n of shifted = n + kExponentMagic. 2^n is applied in two factors, so that the
// multiplication gives denormal results and overflow; their exponents are the halves of n + 254,
// rounded down and up.
template <class V>
RF_INLINE V scaled(V p, V shifted) {
  const auto exponents = bits_of(shifted), half = exponents >> 1;
  return p * float_of(half << 23) * float_of((exponents - half) << 23);
}
#if defined(__AVX512F__)
RF_INLINE Vector<float> scaled(Vector<float> p, Vector<float> shifted) {
  // The form with a mask of all lanes leaves no lane undefined, which compilers warn of.
  return _mm512_maskz_scalef_ps(0xffff, p, shifted - kExponentMagic);
}
#endif

// The greater of x and a bound, and the lesser; NaN stays. Compilers make two instructions of a
// vector's comparison, so the one is named.
RF_INLINE float at_least(float x, float low) { return x < low ? low : x; }
RF_INLINE float at_most(float x, float high) { return x > high ? high : x; }
RF_INLINE Vector<float> at_least(Vector<float> x, float low) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xffff, low - Vector<float>{}, x);
#elif defined(__AVX2__)
  return _mm256_max_ps(low - Vector<float>{}, x);
#else
  return x < low ? low : x;
#endif
}
RF_INLINE Vector<float> at_most(Vector<float> x, float high) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xffff, high - Vector<float>{}, x);
#elif defined(__AVX2__)
  return _mm256_min_ps(high - Vector<float>{}, x);
#else
  return x > high ? high : x;
#endif
}

// a · b + c, rounded once where the instruction set has it: the same in sources that contract
// nothing.
RF_INLINE float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
RF_INLINE Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  for (int l = 0; l < VectorOf<float>::kWidth; ++l) c[l] = fused(a[l], b[l], c[l]);
  return c;
#endif
}
RF_INLINE Vector<float> fused(Vector<float> a, float b, Vector<float> c) {
  return fused(a, b - Vector<float>{}, c);
}
RF_INLINE Vector<float> fused(Vector<float> a, Vector<float> b, float c) {
  return fused(a, b, c - Vector<float>{});
}
RF_INLINE Vector<float> fused(Vector<float> a, float b, float c) {
  return fused(a, b - Vector<float>{}, c - Vector<float>{});
}

// e^r - 1 of |r| <= ln2/2, of a float or a vector of floats.
template <class V>
RF_INLINE V expm1_near_zero(V r) {
  V p = fused(r, 0.00138143184f, 0.00836885128f);
  p = fused(p, r, 0.0416684011f);
  p = fused(p, r, 0.166665195f);
  p = fused(p, r, 0.499999934f);
  return fused(p, r * r, r);
}

// e^(x - n·ln2) for n the whole number next to x / ln2, in two parts of ln2.
template <class V>
RF_INLINE V exp_of_rest(V x, V n) {
  V r = fused(n, -0.693359375f, x);
  r = fused(n, 2.12194440e-4f, r);
  return expm1_near_zero(r) + 1.0f;
}

// exp(x) = 2^n · e^r with |r| <= ln2/2, of a float or a vector of floats.
template <class V>
RF_INLINE V exp_by_parts(V x) {
  x = at_most(at_least(x, -104.0f), 89.0f);
  const V shifted = fused(x, 1.44269504f, kExponentMagic);
  return scaled(exp_of_rest(x, shifted - kExponentMagic), shifted);
}
RF_INLINE float exp_of(float x) { return exp_by_parts(x); }
RF_INLINE Vector<float> exp_of(Vector<float> x) { return exp_by_parts(x); }

// e^x = 2^n · (1 + p), p by the Taylor series to r^13, whose remainder is below 5e-18 for
// |r| <= ln2/2; |x| < 750.
struct DoubleExp {
  int64_t n;
  double p;
};
RF_INLINE DoubleExp double_exp(double x) {
  const double magic = 6755399441055744.0;  // 1.5·2^52
  const double shifted = x * 1.4426950408889634 + magic;
  const double f = shifted - magic;
  double r = x - f * 6.93147180369123816490e-01;
  r = r - f * 1.90821492927058770002e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * (r * r) + r;
  return {bits_of(shifted) - bits_of(magic), p};
}

RF_INLINE double exp_of(double x) {
  x = x < -746.0 ? -746.0 : x;
  x = x > 710.0 ? 710.0 : x;
  const DoubleExp e = double_exp(x);
  const int64_t half = e.n >> 1;
  return (e.p + 1.0) * double_of((half + 1023) << 52) * double_of((e.n - half + 1023) << 52);
}

// log(x) = e·ln2 + log1p(f), x = 2^e·(1 + f), f in [sqrt(1/2) - 1, sqrt(2) - 1).
RF_INLINE float log_of(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float scaled = tiny ? x * 8388608.0f : x;
  const int32_t bits = bits_of(scaled);
  const int32_t shifted = bits - 0x3f3504f3;  // sqrt(1/2)
  const float e = static_cast<float>((shifted >> 23) - (tiny ? 23 : 0));
  const float f = float_of(bits - (shifted & ~0x7fffff)) - 1.0f;
  float p = -0.0763442984f;
  p = p * f + 0.127615503f;
  p = p * f - 0.131601951f;
  p = p * f + 0.142017625f;
  p = p * f - 0.166233565f;
  p = p * f + 0.200012267f;
  p = p * f - 0.250008211f;
  p = p * f + 0.333333317f;
  const float square = f * f;
  float y = e * -2.12194440e-4f + p * (square * f);
  y = y - 0.5f * square;
  y = y + f;
  y = y + e * 0.693359375f;
  y = x == __builtin_inff() ? x : y;
  y = x == 0.0f ? -__builtin_inff() : y;
  return (x < 0.0f || x != x) ? __builtin_nanf("") : y;
}

// 2·atanh(s) with s = f / (2 + f), by its series to s^23.
RF_INLINE double log_of(double x) {
  const bool tiny = x < 2.2250738585072014e-308;
  const double scaled = tiny ? x * 4503599627370496.0 : x;
  const int64_t bits = bits_of(scaled);
  const int64_t shifted = bits - 0x3fe6a09e667f3bcd;  // sqrt(1/2)
  const int64_t exponent = (shifted >> 52) - (tiny ? 52 : 0);
  // Small integers become doubles by the magic constant: no 64-bit conversion is needed.
  const double e = double_of(exponent + 0x4338000000000000) - 6755399441055744.0;
  const double f = double_of(bits - (shifted & ~0xfffffffffffff)) - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 2.0 / 23.0;
  p = p * z + 2.0 / 21.0;
  p = p * z + 2.0 / 19.0;
  p = p * z + 2.0 / 17.0;
  p = p * z + 2.0 / 15.0;
  p = p * z + 2.0 / 13.0;
  p = p * z + 2.0 / 11.0;
  p = p * z + 2.0 / 9.0;
  p = p * z + 2.0 / 7.0;
  p = p * z + 2.0 / 5.0;
  p = p * z + 2.0 / 3.0;
  // log1p(f) = f - f²/2 + s·(f²/2 + z·p): the leading terms stay exact.
  const double half_square = 0.5 * f * f;
  double y = s * (half_square + z * p) + e * 1.90821492927058770002e-10;
  y = f - (half_square - y);
  y = y + e * 6.93147180369123816490e-01;
  y = x == __builtin_inf() ? x : y;
  y = x == 0.0 ? -__builtin_inf() : y;
  return (x < 0.0 || x != x) ? __builtin_nan("") : y;
}

// 1.5·2^23 + 127: adding it leaves the exponent of 2^n in the low bits.
inline constexpr float kBiasMagic = 12583039.0f;

// e^2a of a in [0, 10]. One factor 2^n suffices: it is normal there.
template <class V>
RF_INLINE V exp_of_double(V a) {
  const V shifted = a * 2.88539008f + kBiasMagic;
  return exp_of_rest(a * 2.0f, shifted - kBiasMagic) * float_of(bits_of(shifted) << 23);
}

// x + x³·P(x²) below 0.625, 1 - 2 / (e^2|x| + 1) above, which is 1 from 9.02 on.
template <class V>
RF_INLINE V tanh_by_parts(V x) {
  const V sign = float_of(bits_of(x) & bits_of(-V{}));
  const V magnitude = float_of(bits_of(x) ^ bits_of(sign));
  const V a = at_most(magnitude, 9.5f);
  const V z = x * x;
  V p = -0.00570499037f * z + 0.0206390906f;
  p = p * z - 0.0537397163f;
  p = p * z + 0.133314422f;
  p = p * z - 0.333332819f;
  const V small = magnitude + magnitude * (z * p);
  const V large = 1.0f - 2.0f / (exp_of_double(a) + 1.0f);
  const V y = a < 0.625f ? small : large;
  return float_of(bits_of(y) | bits_of(sign));
}
#if defined(__AVX512F__)
RF_INLINE Vector<float> tanh_of(Vector<float> x) { return tanh_by_table(x); }
#else
RF_INLINE Vector<float> tanh_of(Vector<float> x) { return tanh_by_parts(x); }
#endif
RF_INLINE float tanh_of(float x) { return tanh_by_parts(x); }

// tanh |x| = -m / (2 + m), m = expm1(-2 |x|) = (2^n - 1) + 2^n · p, which keeps the relative error
// near 0; 1 beyond 20.
RF_INLINE double tanh_of(double x) {
  const double a = __builtin_fabs(x);
  const DoubleExp e = double_exp(-2.0 * (a > 20.0 ? 20.0 : a));
  const double power = double_of((e.n + 1023) << 52);
  const double m = power * e.p + (power - 1.0);
  return __builtin_copysign(m / (2.0 + m), x);
}

// -expm1(q) with the sign of x, q = log(erfc(|x|)) = |x|·R(|x|) with R fitted on [0, 4], beyond
// which the result is 1. With e^q = 2^n · (1 + p) as in exp_of, -expm1(q) = (1 - 2^n) - 2^n · p
// keeps the relative error where q is small.
RF_INLINE Vector<float> erf_of(Vector<float> x) {
  using V = Vector<float>;
  const auto sign = bits_of(x) & bits_of(-V{});
  const V c = at_most(float_of(bits_of(x) ^ sign), 4.0f);
  // Even and odd powers apart, a dependent chain half as long.
  const V square = c * c;
  V even = fused(square, 9.256267e-06f, 0.0006328368f);
  even = fused(even, square, 0.00016039618f);
  even = fused(even, square, -0.10277783f);
  even = fused(even, square, -0.128379172f);
  V odd = fused(square, -0.00011764129f, -0.0016670276f);
  odd = fused(odd, square, 0.019153064f);
  odd = fused(odd, square, -0.63661938f);
  const V q = fused(fused(odd, c, even), c, -c);
  const V shifted = fused(q, 1.44269504f, kBiasMagic);
  const V p = expm1_near_zero(fused(shifted - kBiasMagic, -0.693147181f, q));
  const V power = float_of(bits_of(shifted) << 23);
  return float_of(bits_of(fused(-power, p, 1.0f - power)) | sign);
}

// sin and cos of x in double, for |x| <= kTrigonometricLimit: x = n·π/2 + r with a two-part π/2.
inline constexpr float kTrigonometricLimit = 1e6f;
template <bool kCosine>
RF_INLINE float sine_of(float single) {
  const double x = single;
  const double magic = 6755399441055744.0;
  const double shifted = x * 0.63661977236758134308 + magic;
  const int64_t n = bits_of(shifted) + (kCosine ? 1 : 0);
  const double f = shifted - magic;
  double r = x - f * 1.57079632673412561417;  // the first 33 bits of π/2
  r = r - f * 6.07710050650619224932e-11;
  const double z = r * r;
  double s = 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = r + r * (z * s);
  double c = -1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  c = 1.0 + z * c;
  const double y = (n & 1) ? c : s;
  return static_cast<float>((n & 2) ? -y : y);
}

// |x|^y in double through exp and log, which is exact enough for a float result. The sign is that
// of x where y is odd; whole numbers of 2^24 and more are even. Selections instead of conditions,
// so that the loop becomes vector code.
RF_INLINE float pow_of(float base, float exponent) {
  const double x = base, y = exponent;
  const double a = __builtin_fabs(x);
  const double power = exp_of(y * log_of(a));
  const double whole = __builtin_floor(y), even = __builtin_floor(y * 0.5) * 2.0;
  const double negative = x < 0.0 ? __builtin_nan("") : power;
  const double fractional = a == __builtin_inf() ? power : negative;
  const double signed_power = even == y ? power : power * __builtin_copysign(1.0, x);
  double result = whole == y ? signed_power : fractional;
  const double at_infinity = a == 1.0 ? 1.0 : result;
  result = __builtin_fabs(y) == __builtin_inf() ? at_infinity : result;
  result = y == 0.0 ? 1.0 : result;
  return static_cast<float>(x == 1.0 ? 1.0 : result);
}

// float32 <-> float16 and bfloat16 by integer arithmetic, to nearest even.
RF_INLINE float half_to_float(uint16_t h) {
  const int32_t magnitude = (h & 0x7fff) << 13;
  // 2^112 moves the exponent bias from 15 to 127 and normalises denormals.
  const int32_t scaled = bits_of(float_of(magnitude) * 5.192296858534828e+33f);
  const int32_t special = magnitude | 0x7f800000;
  const int32_t bits = magnitude >= 0x0f800000 ? special : scaled;
  return float_of(bits | ((h & 0x8000) << 16));
}
RF_INLINE uint16_t float_to_half(float x) {
  const int32_t bits = bits_of(x);
  const int32_t magnitude = bits & 0x7fffffff;
  const int32_t rounded = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Adding 1/2 aligns a denormal result with the low bits of the sum.
  const int32_t denormal = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000;
  int32_t h = magnitude < 0x38800000 ? denormal : rounded;
  h = magnitude >= 0x477ff000 ? 0x7c00 : h;
  h = magnitude > 0x7f800000 ? 0x7e00 : h;
  return static_cast<uint16_t>(h | ((bits >> 16) & 0x8000));
}
RF_INLINE float bfloat_to_float(uint16_t h) { return float_of(static_cast<int32_t>(h) << 16); }
RF_INLINE uint16_t float_to_bfloat(float x) {
  const int32_t bits = bits_of(x);
  const uint32_t rounded = static_cast<uint32_t>(bits) + 0x7fff + ((bits >> 16) & 1);
  const uint32_t nan = (static_cast<uint32_t>(bits) >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded >> 16);
}

// The same of whole vectors; instructions keep the bits of a NaN.
typedef uint16_t Halves __attribute__((vector_size(RF_VECTOR_BYTES / 2)));
RF_INLINE Halves halves_of(Vector<float> x) {
  Halves h;
#if defined(__AVX512F__)
  const __m256i bits = _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT);
  __builtin_memcpy(&h, &bits, sizeof(h));
#elif defined(__F16C__)
  const __m128i bits = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  __builtin_memcpy(&h, &bits, sizeof(h));
#else
  for (int l = 0; l < VectorOf<float>::kWidth; ++l) h[l] = float_to_half(x[l]);
#endif
  return h;
}
RF_INLINE Vector<float> floats_of(Halves h) {
#if defined(__AVX512F__)
  __m256i bits;
  __builtin_memcpy(&bits, &h, sizeof(h));
  return _mm512_maskz_cvtph_ps(0xffff, bits);
#elif defined(__F16C__)
  __m128i bits;
  __builtin_memcpy(&bits, &h, sizeof(h));
  return _mm256_cvtph_ps(bits);
#else
  Vector<float> x;
  for (int l = 0; l < VectorOf<float>::kWidth; ++l) x[l] = half_to_float(h[l]);
  return x;
#endif
}

}  // namespace redfuser::cpu::RF_ISA
