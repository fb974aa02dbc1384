// Copies of matrix blocks in the layouts that the microkernels read.
#pragma once

#include "cpu/simd/isa.h"
#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {

template <class T, class S>
struct Element {
  static RF_INLINE T of(S x) { return static_cast<T>(x); }
};
struct HalfStorage {
  uint16_t bits;
};
struct BFloatStorage {
  uint16_t bits;
};
template <class T>
struct Element<T, HalfStorage> {
  static RF_INLINE T of(HalfStorage x) { return half_to_float(x.bits); }
};
template <class T>
struct Element<T, BFloatStorage> {
  static RF_INLINE T of(BFloatStorage x) { return bfloat_to_float(x.bits); }
};

RF_INLINE int64_t row_offset(const MatrixView& m, int64_t i) {
  return m.row_offsets ? m.row_offsets[i] : i * m.row_stride;
}
RF_INLINE int64_t column_offset(const MatrixView& m, int64_t j) {
  return m.column_offsets ? m.column_offsets[j] : j * m.column_stride;
}

template <int kBytes>
struct IntegerOf {
  using Type = int32_t;
};
template <>
struct IntegerOf<8> {
  using Type = int64_t;
};

#if defined(__GNUC__) && !defined(__clang__)
// Transposes a square of vectors by swapping off-diagonal blocks of half, quarter, ... the size.
template <class T>
RF_INLINE void transpose_square(Vector<T>* v) {
  constexpr int W = VectorOf<T>::kWidth;
  using Index = Vector<typename IntegerOf<sizeof(T)>::Type>;
#pragma GCC unroll 8
  for (int half = W / 2; half > 0; half /= 2) {
    Index low, high;
#pragma GCC unroll 16
    for (int l = 0; l < W; ++l) {
      low[l] = (l & half) ? W + l - half : l;
      high[l] = (l & half) ? W + l : l + half;
    }
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) {
      if (i & half) continue;
      const Vector<T> a = v[i], b = v[i + half];
      v[i] = __builtin_shuffle(a, b, low);
      v[i + half] = __builtin_shuffle(a, b, high);
    }
  }
}
#else
template <class T>
RF_INLINE void transpose_square(Vector<T>* v) {
  constexpr int W = VectorOf<T>::kWidth;
  T x[W * W], y[W * W];
  __builtin_memcpy(x, v, sizeof(x));
  for (int i = 0; i < W; ++i)
    for (int j = 0; j < W; ++j) y[j * W + i] = x[i * W + j];
  __builtin_memcpy(v, y, sizeof(y));
}
#endif

}  // namespace redfuser::cpu::RF_ISA
