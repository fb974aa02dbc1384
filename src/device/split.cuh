// The products of attention.cuh for key and value tiles written by TMA: slabs of 64 columns with
// 128-byte swizzle (hopper.cuh), in a ring per warp.
#pragma once

#include "device/attention.cuh"
#include "device/hopper.cuh"
#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"

// Waits for the copies of the barrier's phase.
__device__ __forceinline__ void await_copies(unsigned barrier, unsigned parity) {
  while (!ptx_barrier_try_wait(barrier, parity)) {
  }
}

// Loads the warp's 16 rows of q, of which `rows` exist, as operands of score_product; other rows
// and columns are zeros. `at(row, column)` is an element's offset; `pairs`: two columns from an
// even one on may be loaded together. With one half, rows from 8 on are zeros.
template <int Depth, int Halves, typename T, typename At>
__device__ __forceinline__ void load_query(unsigned (&a)[Depth / 16][4], const T* q, At at,
                                           long long rows, int columns, bool pairs) {
  const int quad = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = h * 8 + quad;
#pragma unroll
    for (int d = 0; d < Depth; d += 8) {
      const int column = d + pair;
      const bool exists = h < Halves && row < rows && column < columns;
      unsigned& both = a[d / 16][d % 16 / 8 * 2 + h];
      both = 0;
      if (!exists) continue;
      if (pairs) {
        both = *reinterpret_cast<const unsigned*>(q + at(row, column));
      } else {
        both = q[at(row, column)].bits;
        if (column + 1 < columns) both |= static_cast<unsigned>(q[at(row, column + 1)].bits) << 16;
      }
    }
  }
}

// s = q · kᵀ for all Keys rows of k.
template <int Depth, int Keys, typename T>
__device__ __forceinline__ void score_product(float (&s)[Keys / 8][4],
                                              const unsigned (&q)[Depth / 16][4], unsigned k, T) {
  const int lane = threadIdx.x & 31, matrix = lane >> 3, line = lane & 7;
  const unsigned row = k + ((matrix >> 1) * 8 + line) * kSlabRowBytes;
  const unsigned flip = ((matrix & 1) ^ line) * 16;
#pragma unroll
  for (int n = 0; n < Keys / 8; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) s[n][x] = 0;
  }
#pragma unroll
  for (int d = 0; d < Depth; d += 16) {
    const unsigned column = d / kSlabColumns * Keys * kSlabRowBytes + (flip ^ d % kSlabColumns * 2);
#pragma unroll
    for (int n = 0; n < Keys; n += 16) {
      unsigned b[4];
      ptx_load_matrix(b, row + column + n * kSlabRowBytes);
      multiply(T{}, s[n / 8], q[d / 16], b[0], b[1]);
      multiply(T{}, s[n / 8 + 1], q[d / 16], b[2], b[3]);
    }
  }
}

// o += p · v for all Keys rows of v, which have Depth columns.
template <int Depth, int Keys, typename T>
__device__ __forceinline__ void value_product(float (&o)[Depth / 8][4],
                                              const float (&p)[Keys / 8][4], unsigned v, T) {
  const int lane = threadIdx.x & 31, matrix = lane >> 3, line = lane & 7;
  const unsigned row = v + ((matrix & 1) * 8 + line) * kSlabRowBytes;
  const unsigned flip = ((matrix >> 1) ^ line) * 16;
#pragma unroll
  for (int n = 0; n < Keys; n += 16) {
    unsigned a[4];
    pack_operand(T{}, a, p[n / 8], p[n / 8 + 1]);
#pragma unroll
    for (int d = 0; d < Depth; d += 16) {
      unsigned b[4];
      ptx_load_matrix_transposed(b, row + n * kSlabRowBytes +
                                        d / kSlabColumns * Keys * kSlabRowBytes +
                                        (flip ^ d % kSlabColumns * 2));
      multiply(T{}, o[d / 8], a, b[0], b[1]);
      multiply(T{}, o[d / 8 + 1], a, b[2], b[3]);
    }
  }
}
