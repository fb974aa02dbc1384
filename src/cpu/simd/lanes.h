// Vectors of other types with as many elements as one of floats.
#pragma once

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {

// As many elements of S as a vector of floats has.
template <class S>
struct LanesOf {
  typedef S Type __attribute__((vector_size(sizeof(S) * VectorOf<float>::kWidth)));
};
template <class S>
using Lanes = typename LanesOf<S>::Type;

// One vector, or the first `count` > 0 of its elements.
template <class S>
RF_INLINE Lanes<S> load_lanes(const char* from, int64_t count) {
  Lanes<S> v{};
  if (count == 0) {
    __builtin_memcpy(&v, from, sizeof(v));
  } else {
    __builtin_memcpy(&v, from, static_cast<size_t>(count) * sizeof(S));
  }
  return v;
}
template <class S>
RF_INLINE void store_lanes(char* to, Lanes<S> v, int64_t count) {
  if (count == 0) {
    __builtin_memcpy(to, &v, sizeof(v));
  } else {
    __builtin_memcpy(to, &v, static_cast<size_t>(count) * sizeof(S));
  }
}

// Compilers widen bytes to vectors of this size lane by lane, so instructions are named.
template <class S>
RF_INLINE Lanes<int32_t> int_lanes(Lanes<S> v) {
#if defined(__AVX2__)
  if constexpr (sizeof(S) == 1) {
    __m128i bytes{};
    __builtin_memcpy(&bytes, &v, sizeof(v));
#if defined(__AVX512F__)
    return reinterpret_cast<Lanes<int32_t>>(S(-1) < S(0)
                                                ? _mm512_maskz_cvtepi8_epi32(0xffff, bytes)
                                                : _mm512_maskz_cvtepu8_epi32(0xffff, bytes));
#else
    return reinterpret_cast<Lanes<int32_t>>(S(-1) < S(0) ? _mm256_cvtepi8_epi32(bytes)
                                                         : _mm256_cvtepu8_epi32(bytes));
#endif
  }
#endif
  return __builtin_convertvector(v, Lanes<int32_t>);
}
template <class S>
RF_INLINE Vector<float> float_lanes(Lanes<S> v) {
  return __builtin_convertvector(int_lanes<S>(v), Vector<float>);
}

}  // namespace redfuser::cpu::RF_ISA
