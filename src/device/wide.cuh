// Rows whose values are more than one warpgroup holds: two warpgroups have the same 64 rows. Each
// computes the scores of its part of a tile's keys, and adds all keys' values in its part of the
// columns. Weights pass between them through shared memory: 64 rows of up to 64 keys, as a slab.
#pragma once

constexpr int kWideThreads = 256, kWideRows = 64;

// Barriers of both groups: ids of ptx_named_sync.
constexpr int kWideReduced = 1, kWideWeighed = 2;

// The same, unknown to the compiler: descriptors made of it in a loop are not kept in registers
// around the loop.
__device__ __forceinline__ unsigned here(unsigned address) {
  asm volatile("" : "+r"(address));
  return address;
}

// value = left ⊕ right, of the two groups' values for the rows line and line + 8 of `rows`.
template <typename Op>
__device__ __forceinline__ void join_groups(float (&value)[2], const float* rows, int line) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    value[h] = Op::apply(rows[line + h * 8], rows[kWideRows + line + h * 8]);
  }
}

// The group's weights of Keys keys from `key` on, at the thread's rows line and line + 8.
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

// Adds to o the values v of Keys keys, by weights in registers as pack_weights leaves them.
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
// The same by weights in shared memory, those of the first key at `p`.
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
