// Inverse trigonometric and hyperbolic functions of float, as branch-free code like vector_math.h,
// with errors of up to about 2.5
// units in the last place.
#pragma once

#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {

// π/2 as the sum of two floats.
inline constexpr float kHalfPi = 1.57079637f, kHalfPiRest = -4.37113883e-8f;

// atan(t) = t + t·z·P(z), z = t², for |t| <= tan(π/8): t is x, or (x - 1) / (x + 1) with π/4 added,
// or -1 / x with π/2 added.
RF_INLINE float atan_of(float x) {
  const float a = __builtin_fabsf(x);
  const bool middle = a > 0.414213562f, far = a > 2.41421356f;
  const float above = middle ? a - 1.0f : a, below = middle ? a + 1.0f : 1.0f;
  const float t = (far ? -1.0f : above) / (far ? a : below);
  const float quarters = far ? 1.0f : (middle ? 0.5f : 0.0f);
  const float z = t * t;
  float p = -0.0608345307f;
  p = p * z + 0.105960011f;
  p = p * z - 0.142438486f;
  p = p * z + 0.199984893f;
  p = p * z - 0.333333164f;
  const float y = quarters * kHalfPi + (t + (t * (z * p) + quarters * kHalfPiRest));
  return __builtin_copysignf(y, x);
}

// asin(s) = s + s·z·P(z), z = s², for |s| <= 1/2.
RF_INLINE float asin_of_half(float s, float z) {
  float p = 0.0422185659f;
  p = p * z + 0.0241476018f;
  p = p * z + 0.0454770997f;
  p = p * z + 0.0749524161f;
  p = p * z + 0.166667536f;
  return s + s * (z * p);
}

// Beyond 1/2, asin(a) = π/2 - 2·asin(s) with s = sqrt((1 - a) / 2).
RF_INLINE float asin_of(float x) {
  const float a = __builtin_fabsf(x);
  const bool far = a > 0.5f;
  const float z = far ? (1.0f - a) * 0.5f : x * x;
  const float r = asin_of_half(far ? __builtin_sqrtf(z) : a, z);
  return __builtin_copysignf(far ? kHalfPi - (2.0f * r - kHalfPiRest) : r, x);
}

RF_INLINE float acos_of(float x) {
  const float a = __builtin_fabsf(x);
  const bool far = a > 0.5f;
  const float z = far ? (1.0f - a) * 0.5f : x * x;
  const float r = asin_of_half(far ? __builtin_sqrtf(z) : a, z);
  const float whole = 2.0f * kHalfPi - (2.0f * r - 2.0f * kHalfPiRest);
  const float outer = x > 0.0f ? 2.0f * r : whole;
  const float inner = kHalfPi - (__builtin_copysignf(r, x) - kHalfPiRest);
  return far ? outer : inner;
}

// The others are evaluated in double, where their cancellation leaves a float's precision down to
// 1e-4; below, a cubic has it.
inline constexpr double kCubicLimit = 1e-4;

RF_INLINE float with_cubic(double x, double y, double cubic) {
  return static_cast<float>(__builtin_fabs(x) < kCubicLimit ? x * (1.0 + cubic * (x * x)) : y);
}
RF_INLINE float sinh_of(float single) {
  const double x = single;
  return with_cubic(x, 0.5 * exp_of(x) - 0.5 * exp_of(-x), 1.0 / 6.0);
}
RF_INLINE float cosh_of(float single) {
  const double x = single;
  return static_cast<float>(0.5 * exp_of(x) + 0.5 * exp_of(-x));
}
RF_INLINE float asinh_of(float single) {
  const double x = single, a = __builtin_fabs(x);
  const double y = log_of(a + __builtin_sqrt(a * a + 1.0));
  return with_cubic(x, __builtin_copysign(y, x), -1.0 / 6.0);
}
RF_INLINE float acosh_of(float single) {
  const double x = single;
  const double y = log_of(x + __builtin_sqrt(x * x - 1.0));
  return static_cast<float>(x < 1.0 ? __builtin_nan("") : y);
}
RF_INLINE float atanh_of(float single) {
  const double x = single;
  return with_cubic(x, 0.5 * log_of((1.0 + x) / (1.0 - x)), 1.0 / 3.0);
}

}  // namespace redfuser::cpu::RF_ISA
