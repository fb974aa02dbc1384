// Squares of elements of one or two bytes, transposed.
#pragma once

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// As many elements as 16 bytes hold: every set interleaves such vectors at once.
template <class T>
struct ShortSquare {
  static constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
  typedef T Row __attribute__((vector_size(16)));

  // Elements of the lower or the upper halves of a and b, alternating.
  static RF_INLINE Row interleaved(Row a, Row b, bool upper) {
    Row c{};
#if defined(__GNUC__) && !defined(__clang__)
    if constexpr (sizeof(T) == 1) {
      typedef uint8_t Lanes __attribute__((vector_size(16)));
      c = upper ? __builtin_shuffle(
                      a, b, Lanes{8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31})
                : __builtin_shuffle(a, b,
                                    Lanes{0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23});
    } else {
      typedef uint16_t Lanes __attribute__((vector_size(16)));
      c = upper ? __builtin_shuffle(a, b, Lanes{4, 12, 5, 13, 6, 14, 7, 15})
                : __builtin_shuffle(a, b, Lanes{0, 8, 1, 9, 2, 10, 3, 11});
    }
#else
    const int first = upper ? kWidth / 2 : 0;
    for (int l = 0; l < kWidth; ++l) c[l] = (l & 1) ? b[first + l / 2] : a[first + l / 2];
#endif
    return c;
  }

  // out[r, c] = from[c, r]. Row i of each pass interleaves rows i and i + kWidth / 2 of the one
  // before, so that each pass rotates the bits of an element's (row, column) by one place.
  static RF_INLINE void transpose(const T* from, int64_t stride, T* out, int64_t out_stride) {
    Row v[kWidth], next[kWidth];
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) __builtin_memcpy(&v[i], from + i * stride, sizeof(Row));
#pragma GCC unroll 4
    for (int pass = 1; pass < kWidth; pass *= 2) {
#pragma GCC unroll 16
      for (int i = 0; i < kWidth; ++i) {
        next[i] = interleaved(v[i / 2], v[i / 2 + kWidth / 2], (i & 1) != 0);
      }
#pragma GCC unroll 16
      for (int i = 0; i < kWidth; ++i) v[i] = next[i];
    }
#pragma GCC unroll 16
    for (int i = 0; i < kWidth; ++i) __builtin_memcpy(out + i * out_stride, &v[i], sizeof(Row));
  }
};

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
