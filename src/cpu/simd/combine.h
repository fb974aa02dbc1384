// Combining of vectors and of their lanes: sums, products, maxima and minima. The instructions for
// maxima and minima of float32 lose a NaN, which NaNs finds.
#pragma once

#include "cpu/simd/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace redfuser::cpu::RF_ISA {
namespace {

// Combining works on vectors and on scalars alike. Max and Min: a NaN, once in, stays.
struct Sum {
  template <class V>
  static RF_INLINE V of(V a, V x) {
    return a + x;
  }
};
struct Prod {
  template <class V>
  static RF_INLINE V of(V a, V x) {
    return a * x;
  }
};
struct Max {
  template <class V>
  static RF_INLINE V of(V a, V x) {
    return ((x > a) | (x != x)) ? x : a;
  }
};
struct Min {
  template <class V>
  static RF_INLINE V of(V a, V x) {
    return ((x < a) | (x != x)) ? x : a;
  }
};

#if defined(__x86_64__)
#if RF_VECTOR_BYTES == 64
RF_INLINE Vector<float> extreme(Max, Vector<float> x, Vector<float> a) {
  return _mm512_maskz_max_ps(0xffff, x, a);
}
RF_INLINE Vector<float> extreme(Min, Vector<float> x, Vector<float> a) {
  return _mm512_maskz_min_ps(0xffff, x, a);
}
struct NaNs {
  __mmask16 any = 0;
  RF_INLINE void add(Vector<float> x, Vector<float> y) {
    any |= _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q);
  }
  RF_INLINE bool found() const { return any != 0; }
};
#elif RF_VECTOR_BYTES == 32
RF_INLINE Vector<float> extreme(Max, Vector<float> x, Vector<float> a) {
  return _mm256_max_ps(x, a);
}
RF_INLINE Vector<float> extreme(Min, Vector<float> x, Vector<float> a) {
  return _mm256_min_ps(x, a);
}
struct NaNs {
  __m256 any = _mm256_setzero_ps();
  RF_INLINE void add(Vector<float> x, Vector<float> y) {
    any = _mm256_or_ps(any, _mm256_cmp_ps(x, y, _CMP_UNORD_Q));
  }
  RF_INLINE bool found() const { return _mm256_movemask_ps(any) != 0; }
};
#else
RF_INLINE Vector<float> extreme(Max, Vector<float> x, Vector<float> a) { return _mm_max_ps(x, a); }
RF_INLINE Vector<float> extreme(Min, Vector<float> x, Vector<float> a) { return _mm_min_ps(x, a); }
struct NaNs {
  __m128 any = _mm_setzero_ps();
  RF_INLINE void add(Vector<float> x, Vector<float> y) {
    any = _mm_or_ps(any, _mm_cmpunord_ps(x, y));
  }
  RF_INLINE bool found() const { return _mm_movemask_ps(any) != 0; }
};
#endif
#else
RF_INLINE Vector<float> extreme(Max, Vector<float> x, Vector<float> a) { return x > a ? x : a; }
RF_INLINE Vector<float> extreme(Min, Vector<float> x, Vector<float> a) { return x < a ? x : a; }
struct NaNs {
  Vector<int32_t> any{};
  RF_INLINE void add(Vector<float> x, Vector<float> y) { any |= (x != x) | (y != y); }
  RF_INLINE bool found() const {
    int32_t all = 0;
    for (int l = 0; l < VectorOf<float>::kWidth; ++l) all |= any[l];
    return all != 0;
  }
};
#endif

// Of lanes that are numbers.
struct MaxOfNumbers {
  template <class V>
  static RF_INLINE V of(V a, V x) {
    return x > a ? x : a;
  }
};
struct MinOfNumbers {
  template <class V>
  static RF_INLINE V of(V a, V x) {
    return x < a ? x : a;
  }
};

// Of the first N lanes of v, by halves.
template <class Combine, class T, int N, class V>
RF_INLINE T combined(const V& v) {
  if constexpr (N == 1) {
    return v[0];
  } else if constexpr (N * sizeof(T) > 16) {
    typedef T Half __attribute__((vector_size(N / 2 * sizeof(T))));
    Half low, high;
    __builtin_memcpy(&low, &v, sizeof(low));
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&v) + sizeof(low), sizeof(high));
    return combined<Combine, T, N / 2>(Combine::of(low, high));
  } else if constexpr (N == 2) {
    return Combine::of(v[0], v[1]);
  } else {
    return Combine::of(Combine::of(v[0], v[2]), Combine::of(v[1], v[3]));
  }
}

template <class Combine, class T>
RF_INLINE T combined_lanes(Vector<T> v) {
  return combined<Combine, T, VectorOf<T>::kWidth>(v);
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
