// Quotients of vectors by one divisor, each as a division rounds it, without a division for each.
//
// With r = 1/s and q0 = x · r, two steps q' = q + (x - q · s) · r give the quotient as rounded to
// nearest (P. Markstein, IA-64 and Elementary Functions, 2000, theorems of chapter 8): after the
// first, q is within one unit in the last place of x/s, the remainder x - q · s is then exact by a
// fused multiply-add, and r is 1/s as rounded. That holds where neither remainders nor quotients
// are subnormal or overflow, which QuotientRange bounds; elements outside of it are divided.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Bits of magnitudes: least <= |x| <= most, and of the divisor.
template <class T>
struct QuotientRange;
template <>
struct QuotientRange<float> {
  using Bits = uint32_t;
  static constexpr Bits kMagnitude = 0x7fffffff;
  static constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
  static constexpr float kLeastDivisor = 0x1p-24f, kMostDivisor = 0x1p24f;
};
template <>
struct QuotientRange<double> {
  using Bits = uint64_t;
  static constexpr Bits kMagnitude = 0x7fffffffffffffff;
  static constexpr double kLeast = 0x1p-900, kMost = 0x1p900;
  static constexpr double kLeastDivisor = 0x1p-100, kMostDivisor = 0x1p100;
};

template <class T>
class Divisor {
  using Range = QuotientRange<T>;
  using Bits = typename Range::Bits;

 public:
  explicit RF_INLINE Divisor(T s) : divisor_(s), reciprocal_(T(1) / s) {
#if defined(__FMA__)
    const T size = s < 0 ? -s : s;
    corrects_ = size >= Range::kLeastDivisor && size <= Range::kMostDivisor;
#endif
  }

  // v[j] = x(j) / s for j < count. `x` loads a vector, and may be called twice.
  template <int count, class Load>
  RF_INLINE void divide(Vector<T>* v, const Load& x) const {
    const Vector<T> s = divisor_ - Vector<T>{}, r = reciprocal_ - Vector<T>{};
    if (corrects_ && within_range<count>(x)) {
#pragma GCC unroll 8
      for (int j = 0; j < count; ++j) {
        const Vector<T> a = x(j);
        Vector<T> q = a * r;
        q = fused(fused(-q, s, a), r, q);
        v[j] = fused(fused(-q, s, a), r, q);
      }
      return;
    }
#pragma GCC unroll 8
    for (int j = 0; j < count; ++j) v[j] = x(j) / s;
  }

 private:
  static RF_INLINE Vector<T> fused(Vector<T> a, Vector<T> b, Vector<T> c) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return _mm512_fmadd_ps(a, b, c);
    if constexpr (sizeof(T) == 8) return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
    if constexpr (sizeof(T) == 4) return _mm256_fmadd_ps(a, b, c);
    if constexpr (sizeof(T) == 8) return _mm256_fmadd_pd(a, b, c);
#endif
    return a * b + c;
  }

  // Zeros with a sign are outside of the range: the steps lose it.
  template <int count, class Load>
  RF_INLINE bool within_range(const Load& x) const {
    typedef Bits Words __attribute__((vector_size(RF_VECTOR_BYTES)));
    constexpr Bits least = __builtin_bit_cast(Bits, Range::kLeast);
    constexpr Bits span = __builtin_bit_cast(Bits, Range::kMost) - least;
    Words outside{};
#pragma GCC unroll 8
    for (int j = 0; j < count; ++j) {
      const Vector<T> a = x(j);
      Words bits;
      __builtin_memcpy(&bits, &a, sizeof(bits));
      const Words above = (bits & Range::kMagnitude) - least;
      outside |= reinterpret_cast<Words>((above > span) & (bits != 0));
    }
    return !any(outside);
  }

  template <class Words>
  static RF_INLINE bool any(const Words& w) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(w), reinterpret_cast<__m512i>(w)) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256(reinterpret_cast<__m256i>(w), reinterpret_cast<__m256i>(w));
#else
    Bits all = 0;
    for (int l = 0; l < VectorOf<T>::kWidth; ++l) all |= w[l];
    return all != 0;
#endif
  }

  T divisor_, reciprocal_;
  bool corrects_ = false;
};

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
