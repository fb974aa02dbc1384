// Register-blocked products: C[MR, NV vectors] (+)= A[MR, k] · B[k, NV vectors].
#pragma once

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {

// Rows of a register block. With two vectors per row the accumulators, two vectors of B and a
// broadcast of A fill the register file: 32 registers for AVX-512, 16 otherwise.
#if RF_VECTOR_BYTES == 64
inline constexpr int kBlockRows = 12;
#elif RF_VECTOR_BYTES == 32
inline constexpr int kBlockRows = 6;
#else
inline constexpr int kBlockRows = 6;
#endif
inline constexpr int kBlockVectors = 2;

// What a block does with B besides the product.
enum class ReadsB {
  Packed,    // nothing
  FetchesA,  // nothing, but fetches the rows of A after the block's
  FetchesB,  // nothing, but fetches what follows in memory
  InPlace,   // fetches rows of it ahead, and of the columns after the block's
  AndPacks,  // the same, and stores it for the next blocks
};

// A is read in place, row i at a + i·a_stride with unit stride along k; row k of B is at b +
// k·b_stride, each pair of its vectors `pair_stride` elements after the pair before. `packed` has
// room for k rows of NV vectors.
template <class T, int MR, int NV, ReadsB kReads = ReadsB::Packed>
RF_INLINE void gemm_pairs(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_stride,
                          int64_t pair_stride, T* c, int64_t c_stride, bool accumulate,
                          T* packed = nullptr) {
  constexpr int64_t kRowsAhead = 32, kBytesAhead = 4096;
  constexpr int W = VectorOf<T>::kWidth;
  // A partial sum per block, added to C at the end: rounding errors grow with the block's length
  // plus the number of blocks, not with their product.
  Vector<T> sum[MR][NV] = {};
  const int64_t ahead = k < kRowsAhead ? k : kRowsAhead;
  const int64_t after = (ahead - k) * b_stride + NV * W;
  for (int64_t p = 0; p < k; ++p) {
    Vector<T> row[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) row[j] = load_vector(b + j / 2 * pair_stride + j % 2 * W);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      const Vector<T> scale = a[i * a_stride] - Vector<T>{};
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) sum[i][j] += scale * row[j];
    }
    if constexpr (kReads == ReadsB::FetchesA) {
      constexpr int64_t kLine = 64 / sizeof(T);
      if (p % kLine == 0) {
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i) __builtin_prefetch(a + (MR + i) * a_stride, 0, 2);
      }
    } else if constexpr (kReads == ReadsB::FetchesB) {
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) __builtin_prefetch(b + kBytesAhead / sizeof(T) + j * W, 0, 2);
    } else if constexpr (kReads != ReadsB::Packed) {
      const T* next = b + (p + ahead < k ? ahead * b_stride : after);
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) __builtin_prefetch(next + j * W, 0, 2);
    }
    if constexpr (kReads == ReadsB::AndPacks) {
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) store_vector(packed + (p * NV + j) * W, row[j]);
    }
    a += 1;
    b += b_stride;
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) {
      T* to = c + i * c_stride + j * W;
      store_vector(to, accumulate ? load_vector(to) + sum[i][j] : sum[i][j]);
    }
}

// The same with the vectors of a row of B side by side.
template <class T, int MR, int NV, ReadsB kReads = ReadsB::Packed>
void gemm_block(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_stride, T* c,
                int64_t c_stride, bool accumulate, T* packed = nullptr) {
  gemm_pairs<T, MR, NV, kReads>(k, a, a_stride, b, b_stride, 2 * VectorOf<T>::kWidth, c, c_stride,
                                accumulate, packed);
}

}  // namespace redfuser::cpu::RF_ISA
