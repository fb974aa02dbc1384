// Head sizes whose output exceeds one warpgroup's registers: two warpgroups have the same 64 rows,
// each with half of the output columns. Both compute the scores of half of a tile's keys, or the
// first computes all. They exchange weights through shared memory, 64 rows of up to 64 keys as one
// slab.
#pragma once

#include "device/hopper.cuh"
#include "device/ptx.cuh"
#include "device/ptx_hopper.cuh"

constexpr int kWideThreads = 256, kWideRows = 64;

// Named barriers of both groups (ptx_named_sync). After kWideReduced weights may be written, after
// kWideWeighed they may be read.
constexpr int kWideReduced = 1, kWideWeighed = 2;

// The same address, opaque to the compiler, so that descriptors derived from it in a loop are not
// hoisted into registers.
__device__ __forceinline__ unsigned opaque_address(unsigned address) {
  asm volatile("" : "+r"(address));
  return address;
}

// Stores the group's weights of Keys keys from `key` on, for the thread's rows line and line + 8.
template <int Keys>
__device__ __forceinline__ void store_weights(char* weights, const unsigned (&p)[Keys / 16][4],
                                              int line, int key, int pair) {
  char* const row = weights + line * kSlabRowBytes;
  const int flip = (line & 7) << 4;
#pragma unroll
  for (int n = 0; n < Keys / 8; ++n) {
    const int column = (key + n * 8 + pair) * 2 ^ flip;
    *reinterpret_cast<unsigned*>(row + column) = p[n / 2][n % 2 * 2];
    *reinterpret_cast<unsigned*>(row + 8 * kSlabRowBytes + column) = p[n / 2][n % 2 * 2 + 1];
  }
}

// Sets s to the products of the rows q and Keys rows of k over Depth columns, or adds them to it.
template <typename T, int Depth, int Keys>
__device__ __forceinline__ void add_scores(float (&s)[Keys / 8][4], unsigned q, int q_slab,
                                           unsigned k, int k_slab, bool add) {
  const unsigned long long a = matrix_descriptor(q, q_slab);
  const unsigned long long b = matrix_descriptor(k, k_slab);
#pragma unroll
  for (int d = 0; d < Depth; d += 16) {
    const int slab = d / kSlabColumns, inside = d % kSlabColumns * 2;
    Product<T, Keys>::score(s, a + ((slab * q_slab + inside) >> 4),
                            b + ((slab * k_slab + inside) >> 4), add || d > 0);
  }
}

// Adds to o the values v of Keys keys, by weights in registers packed by pack_weights.
template <typename T, int Columns, int Keys>
__device__ __forceinline__ void add_values(float (&o)[Columns / 8][4],
                                           const unsigned (&p)[Keys / 16][4], unsigned v,
                                           int v_slab) {
  const unsigned long long b = matrix_descriptor(v, v_slab);
#pragma unroll
  for (int n = 0; n < Keys; n += 16) {
    Product<T, Columns>::value(o, p[n / 16], b + (n * kSlabRowBytes >> 4), 1);
  }
}
// The same with weights in shared memory; `p` is the address of the first key's.
template <typename T, int Columns, int Keys>
__device__ __forceinline__ void add_values(float (&o)[Columns / 8][4], unsigned p, unsigned v,
                                           int v_slab) {
  const unsigned long long a = matrix_descriptor(p, 0);
  const unsigned long long b = matrix_descriptor(v, v_slab);
#pragma unroll
  for (int n = 0; n < Keys; n += 16) {
    Product<T, Columns>::value(o, a + (n * 2 >> 4), b + (n * kSlabRowBytes >> 4), 1);
  }
}
