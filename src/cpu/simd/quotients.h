// Remainders of floats, and quotients and remainders of integers, by vectors of quotients in double
// precision.
//
// Floats: with |x / y| < 2^28 the truncated quotient q times y is exact in double precision for
// float32, and x - q · y is a multiple of y's last place below |y|, thus exact as well. For float64
// a fused multiply-add gives x - q · y without rounding; a quotient that was rounded up to the next
// integer shows in its sign. Integers below 2^52 have quotients of doubles that are at least 2^-52
// of their value away from the next integer, so that truncation gives the exact one.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {

inline constexpr int kQuotientChunk = 64;

template <class T, Mode mode>
RF_INLINE T left_of(const T* x, int64_t i) {
  return mode == Mode::SV ? *x : x[i];
}
template <class T, Mode mode>
RF_INLINE T right_of(const T* y, int64_t i) {
  return mode == Mode::VS ? *y : y[i];
}

RF_INLINE float fmod_of(float x, float y) { return __builtin_fmodf(x, y); }
RF_INLINE double fmod_of(double x, double y) { return __builtin_fmod(x, y); }

RF_INLINE float exact_remainder(float x, float y, double whole) {
  const float r = static_cast<float>(static_cast<double>(x) - whole * static_cast<double>(y));
  return __builtin_copysignf(__builtin_fabsf(x) < __builtin_fabsf(y) ? x : r, x);
}
RF_INLINE double exact_remainder(double x, double y, double whole) {
  double r = __builtin_fma(-whole, y, x);
  r = r * x < 0 ? r + __builtin_copysign(y, x) : r;
  return __builtin_copysign(__builtin_fabs(x) < __builtin_fabs(y) ? x : r, x);
}

// out = fmod(x, y); false where a quotient is too large or no number.
template <class T, Mode mode>
RF_INLINE bool remainders(int64_t count, const T* x, const T* y, T* out) {
#if !defined(__FMA__)
  if (sizeof(T) == 8) return false;
#endif
  int32_t far = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T a = left_of<T, mode>(x, i), b = right_of<T, mode>(y, i);
    const double q = static_cast<double>(a) / static_cast<double>(b);
    const bool near = __builtin_fabs(q) < 0x1p28;
    far |= near ? 0 : 1;
    out[i] = exact_remainder(a, b, static_cast<double>(static_cast<int32_t>(near ? q : 0)));
  }
  return far == 0;
}

// Calls use(count, x, y, z) for parts of the rows, of at most kQuotientChunk elements. An operand
// that is one value for the row stays where it is.
template <class T, Mode mode, class Use>
RF_INLINE void for_chunks(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a,
                          Operand b, const Use& use) {
  for (int64_t row = 0; row < rows; ++row) {
    const T *x = row_of<T>(a, row), *y = row_of<T>(b, row);
    T* z = static_cast<T*>(out) + row * out_stride;
    for (int64_t c = 0; c < cols; c += kQuotientChunk) {
      const int64_t count = cols - c < kQuotientChunk ? cols - c : kQuotientChunk;
      use(count, mode == Mode::SV ? x : x + c, mode == Mode::VS ? y : y + c, z + c);
    }
  }
}

// z = Function::of(fmod(x, y), y).
template <class T, class Function, Mode mode>
void remainder_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a,
                      Operand b) {
  const auto chunk = [](int64_t count, const T* x, const T* y, T* z) {
    T found[kQuotientChunk];
    if (!remainders<T, mode>(count, x, y, found)) {
      for (int64_t i = 0; i < count; ++i) {
        found[i] = fmod_of(left_of<T, mode>(x, i), right_of<T, mode>(y, i));
      }
    }
    for (int64_t i = 0; i < count; ++i) {
      z[i] = Function::of(found[i], right_of<T, mode>(y, i));
    }
  };
  for_chunks<T, mode>(rows, cols, out, out_stride, a, b, chunk);
}

// All elements are below 2^52, as all of 32 bits are.
template <class T>
RF_INLINE bool exact_in_double(int64_t count, const T* x) {
  if constexpr (sizeof(T) == 4) return true;
  uint64_t bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto v = static_cast<uint64_t>(x[i]);
    bits |= static_cast<T>(-1) < 0 ? v ^ static_cast<uint64_t>(static_cast<int64_t>(v) >> 63) : v;
  }
  return bits >> 52 == 0;
}

// x / y truncated, for y != 0, of elements that are exact in double precision.
template <class T>
RF_INLINE T truncated_quotient(T x, T y) {
  return static_cast<T>(static_cast<double>(x) / static_cast<double>(y));
}

// z = Function::of(x, y, q), where q is x / y truncated; that of 0 is 0, and that of the
// overflowing quotient wraps around.
template <class T, class Function, Mode mode>
void quotient_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a,
                     Operand b) {
  const auto minus_one = [](T v) { return static_cast<T>(-1) < 0 && v == static_cast<T>(-1); };
  const auto negated = [](T v) { return static_cast<T>(0 - static_cast<uint64_t>(v)); };
  const auto chunk = [&](int64_t count, const T* x, const T* y, T* z) {
    const bool exact = exact_in_double(mode == Mode::SV ? 1 : count, x) &&
                       exact_in_double(mode == Mode::VS ? 1 : count, y);
    const auto run = [&](const auto& divide) {
      RF_INDEPENDENT
      for (int64_t i = 0; i < count; ++i) {
        const T u = left_of<T, mode>(x, i), v = right_of<T, mode>(y, i);
        const T q = divide(u, v == 0 || minus_one(v) ? static_cast<T>(1) : v);
        z[i] = Function::of(u, v, v == 0 ? static_cast<T>(0) : minus_one(v) ? negated(u) : q);
      }
    };
    exact ? run([](T u, T v) { return truncated_quotient(u, v); })
          : run([](T u, T v) { return static_cast<T>(u / v); });
  };
  for_chunks<T, mode>(rows, cols, out, out_stride, a, b, chunk);
}

namespace {

// Quotients of vectors by one divisor, each as a division rounds it, without a division for each.
//
// With 1/s = r + e, two numbers, q = x · r + x · e is within one unit in the last place of x/s. The
// remainder q · s - x is then exact by a fused multiply-add, r is 1/s as rounded, and q - (q · s -
// x) · r is the quotient as rounded to nearest (P. Markstein, IA-64 and Elementary Functions, 2000,
// theorems of chapter 8). That holds where neither remainders nor quotients are subnormal or
// overflow, which QuotientRange bounds; elements outside of it are divided. So are zeros with a
// sign, which the steps lose.

// Of magnitudes of x that are not 0, and of the divisor.
template <class T>
struct QuotientRange;
template <>
struct QuotientRange<float> {
  using Bits = uint32_t;
  static constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
  static constexpr float kLeastDivisor = 0x1p-24f, kMostDivisor = 0x1p24f;
};
template <>
struct QuotientRange<double> {
  using Bits = uint64_t;
  static constexpr double kLeast = 0x1p-900, kMost = 0x1p900;
  static constexpr double kLeastDivisor = 0x1p-100, kMostDivisor = 0x1p100;
};

template <class T>
class Divisor {
  using Range = QuotientRange<T>;
  using Bits = typename Range::Bits;

 public:
  explicit RF_INLINE Divisor(T s) : Divisor(s, T(1) / s) {}
  RF_INLINE Divisor(T s, T reciprocal) : divisor_(s), reciprocal_(reciprocal) {
#if defined(__FMA__)
    corrects_ = s >= Range::kLeastDivisor && s <= Range::kMostDivisor;
#endif
  }

  // v[j] = x(j) / s for j < count. `x` loads a vector, and may be called twice.
  template <int count, class Load>
  RF_INLINE void divide(Vector<T>* v, const Load& x) const {
    const Vector<T> s = divisor_ - Vector<T>{}, r = reciprocal_ - Vector<T>{};
    const Vector<T> e = -(remainder(s, r, T(1) - Vector<T>{}) * r), negative = -r;
    if (corrects_ && within_range<count>(x)) {
#pragma GCC unroll 8
      for (int j = 0; j < count; ++j) {
        const Vector<T> a = x(j);
        const Vector<T> q = without(a * e, a, negative);
        v[j] = without(q, remainder(q, s, a), r);
      }
      return;
    }
#pragma GCC unroll 8
    for (int j = 0; j < count; ++j) v[j] = x(j) / s;
  }

 private:
  // a · b - c and c - a · b.
  static RF_INLINE Vector<T> remainder(Vector<T> a, Vector<T> b, Vector<T> c) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return _mm512_fmsub_ps(a, b, c);
    if constexpr (sizeof(T) == 8) return _mm512_fmsub_pd(a, b, c);
#elif defined(__FMA__)
    if constexpr (sizeof(T) == 4) return _mm256_fmsub_ps(a, b, c);
    if constexpr (sizeof(T) == 8) return _mm256_fmsub_pd(a, b, c);
#endif
    return a * b - c;
  }
  static RF_INLINE Vector<T> without(Vector<T> c, Vector<T> a, Vector<T> b) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4) return _mm512_fnmadd_ps(a, b, c);
    if constexpr (sizeof(T) == 8) return _mm512_fnmadd_pd(a, b, c);
#elif defined(__FMA__)
    if constexpr (sizeof(T) == 4) return _mm256_fnmadd_ps(a, b, c);
    if constexpr (sizeof(T) == 8) return _mm256_fnmadd_pd(a, b, c);
#endif
    return c - a * b;
  }

  // Twice the bits have no sign.
  template <int count, class Load>
  RF_INLINE bool within_range(const Load& x) const {
    typedef Bits Words __attribute__((vector_size(RF_VECTOR_BYTES)));
    constexpr Bits kLeast = 2 * __builtin_bit_cast(Bits, Range::kLeast);
    constexpr Bits kSpan = 2 * __builtin_bit_cast(Bits, Range::kMost) - kLeast;
    Words bits[count], most{};
#pragma GCC unroll 8
    for (int j = 0; j < count; ++j) {
      const Vector<T> a = x(j);
      __builtin_memcpy(&bits[j], &a, sizeof(a));
      const Words above = bits[j] + bits[j] - kLeast;
      most = above > most ? above : most;
    }
    if (!any(reinterpret_cast<Words>(most > kSpan))) return true;
    Words outside{};
#pragma GCC unroll 8
    for (int j = 0; j < count; ++j) {
      outside |= reinterpret_cast<Words>((bits[j] + bits[j] - kLeast > kSpan) & (bits[j] != 0));
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
