// Copies of matrix blocks in the layouts that the microkernels read.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "cpu/simd/isa.h"
#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {

// The values of a matrix' elements.
template <class T, class S>
struct Element {
  explicit RF_INLINE Element(const MatrixView&) {}
  RF_INLINE T of(S x) const { return static_cast<T>(x); }
};
struct HalfStorage {
  uint16_t bits;
};
struct BFloatStorage {
  uint16_t bits;
};
struct CodeStorage {
  uint8_t code;
};
template <class T>
struct Element<T, HalfStorage> {
  explicit RF_INLINE Element(const MatrixView&) {}
  RF_INLINE T of(HalfStorage x) const { return half_to_float(x.bits); }
};
template <class T>
struct Element<T, BFloatStorage> {
  explicit RF_INLINE Element(const MatrixView&) {}
  RF_INLINE T of(BFloatStorage x) const { return bfloat_to_float(x.bits); }
};
template <class T>
struct Element<T, CodeStorage> {
  explicit RF_INLINE Element(const MatrixView& matrix) : values(matrix.code_values) {}
  RF_INLINE T of(CodeStorage x) const { return values[x.code]; }
  const float* values;
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

// Fewer elements than a vector has.
template <class T>
RF_INLINE void copy_part(T* to, const T* from, int64_t count) {
#pragma GCC unroll 4
  for (int part = VectorOf<T>::kWidth / 2; part > 0; part /= 2) {
    if ((count & part) == 0) continue;
    __builtin_memcpy(to, from, static_cast<size_t>(part) * sizeof(T));
    to += part;
    from += part;
  }
}

// The lanes of two vectors side by side that swap their off-diagonal blocks of `kHalf` lanes.
template <class T, int kHalf>
struct SwappedLanes {
  static constexpr int W = VectorOf<T>::kWidth;
  using Lane = typename IntegerOf<sizeof(T)>::Type;
  Lane low[W], high[W];
  constexpr SwappedLanes() : low(), high() {
    for (int l = 0; l < W; ++l) {
      low[l] = static_cast<Lane>((l & kHalf) ? W + l - kHalf : l);
      high[l] = static_cast<Lane>((l & kHalf) ? W + l : l + kHalf);
    }
  }
};

template <class T>
struct EvenLanes {
  static constexpr int W = VectorOf<T>::kWidth;
  typename IntegerOf<sizeof(T)>::Type lanes[W];
  constexpr EvenLanes() : lanes() {
    for (int l = 0; l < W; ++l) lanes[l] = 2 * l;
  }
};

#if defined(__GNUC__) && !defined(__clang__)
// Elements 0, 2, 4, ... of two vectors side by side, and elements 1, 3, 5, ...
template <class T>
RF_INLINE void split_pairs(Vector<T> a, Vector<T> b, Vector<T>* even, Vector<T>* odd) {
  if constexpr (sizeof(Vector<T>) == 32 && sizeof(T) == 4) {
    // AVX2 shuffles two vectors within their halves, and quarters of one vector across them.
    typedef int32_t Lanes __attribute__((vector_size(32)));
    typedef int64_t Quarters __attribute__((vector_size(32)));
    constexpr Quarters kOrder{0, 2, 1, 3};
    const Vector<T> e = __builtin_shuffle(a, b, Lanes{0, 2, 8, 10, 4, 6, 12, 14});
    const Vector<T> o = __builtin_shuffle(a, b, Lanes{1, 3, 9, 11, 5, 7, 13, 15});
    *even = reinterpret_cast<Vector<T>>(__builtin_shuffle(reinterpret_cast<Quarters>(e), kOrder));
    *odd = reinterpret_cast<Vector<T>>(__builtin_shuffle(reinterpret_cast<Quarters>(o), kOrder));
  } else {
    static constexpr EvenLanes<T> kEven;
    const auto lanes = load_vector(kEven.lanes);
    *even = __builtin_shuffle(a, b, lanes);
    *odd = __builtin_shuffle(a, b, lanes + 1);
  }
}

// Transposes a square of vectors by swapping off-diagonal blocks of half, quarter, ... the size.
template <class T, int kHalf = VectorOf<T>::kWidth / 2>
RF_INLINE void transpose_square(Vector<T>* v) {
  constexpr int W = VectorOf<T>::kWidth;
  static constexpr SwappedLanes<T, kHalf> kLanes;
  const auto low = load_vector(kLanes.low), high = load_vector(kLanes.high);
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) {
    if (i & kHalf) continue;
    const Vector<T> a = v[i], b = v[i + kHalf];
    v[i] = __builtin_shuffle(a, b, low);
    v[i + kHalf] = __builtin_shuffle(a, b, high);
  }
  if constexpr (kHalf > 1) transpose_square<T, kHalf / 2>(v);
}
#else
template <class T>
RF_INLINE void split_pairs(Vector<T> a, Vector<T> b, Vector<T>* even, Vector<T>* odd) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int l = 0; l < W; ++l) {
    const int from = 2 * l % W;
    (*even)[l] = 2 * l < W ? a[from] : b[from];
    (*odd)[l] = 2 * l < W ? a[from + 1] : b[from + 1];
  }
}

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

// v[j][i] = from[i · stride + j]. Loads put halves of rows together, in place of a step of
// shuffles.
template <class T>
RF_INLINE void load_transposed(const T* from, int64_t stride, Vector<T>* v) {
  constexpr int W = VectorOf<T>::kWidth;
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
  const auto half = [](const T* at) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  };
#pragma GCC unroll 8
  for (int i = 0; i < W / 2; ++i) {
    const T *low = from + i * stride, *high = low + W / 2 * stride;
    for (int part = 0; part < 2; ++part, low += W / 2, high += W / 2) {
      v[i + part * (W / 2)] = reinterpret_cast<Vector<T>>(
          _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(half(low)), half(high), 1));
    }
  }
  transpose_square<T, W / 4>(v);
#else
#pragma GCC unroll 16
  for (int i = 0; i < W; ++i) v[i] = load_vector(from + i * stride);
  transpose_square<T>(v);
#endif
}

}  // namespace redfuser::cpu::RF_ISA
