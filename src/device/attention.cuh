// Tiles of two chained matrix products. A warp has 16 rows; its fragments have mma.sync's layout:
// element x of column block n is at
//   row  lane / 4 + (x >= 2 ? 8 : 0),   column  8 n + lane % 4 * 2 + x % 2.
#pragma once

#include "device/maps/group.cuh"
#include "device/math.cuh"
#include "device/ptx.cuh"
#include "device/reduce.cuh"
#include "device/types.cuh"

// Elements between rows of a tile in shared memory: free of bank conflicts, rows 16-byte aligned.
template <typename T>
__host__ __device__ constexpr int pitch_of(int columns) {
  return columns + 16 / static_cast<int>(sizeof(T));
}

template <typename Op, typename T>
__device__ __forceinline__ T quad_reduce(T value) {
#pragma unroll
  for (int mask = 1; mask <= 2; mask <<= 1) {
    const T other = shuffle_xor(value, mask);
    value = (threadIdx.x & mask) ? Op::apply(other, value) : Op::apply(value, other);
  }
  return value;
}

// Loads rows [0, Rows) of a tile with `columns` elements each, padded with zeros to Columns; rows
// from `valid` on are zeros. `at(row, column)` is an element's offset; `vector`: 16-byte copies at
// multiples of 16 bytes are allowed. `Threads` threads load, this one is `thread`. A row
// is followed by `Padding` bytes.
template <int Rows, int Columns, int Threads, int Padding = 16, typename T, typename At>
__device__ __forceinline__ void load_tile(T* tile, const T* from, At at, long long valid,
                                          int columns, bool vector, int thread) {
  constexpr int kGroup = 16 / sizeof(T), kGroups = Columns / kGroup;
  constexpr int kPitch = Columns + Padding / static_cast<int>(sizeof(T));
  if (vector) {
    const int rows = static_cast<int>(min_of(valid, static_cast<long long>(Rows)));
#pragma unroll 4
    for (int step = 0; step < Rows * kGroups; step += Threads) {
      const int i = step + thread, row = i / kGroups, column = i % kGroups * kGroup;
      if (Rows * kGroups % Threads != 0 && i >= Rows * kGroups) break;
      const bool exists = row < rows && column < columns;
      // A costly offset in a select would become a branch for each copy.
      const long long offset = at(min(row, rows - 1), column);
      ptx_copy_async(tile + row * kPitch + column, from + (exists ? offset : 0), exists);
    }
  } else {
    for (int i = thread; i < Rows * Columns; i += Threads) {
      const int row = i / Columns, column = i % Columns;
      T value{};
      if (row < valid && column < columns) value = from[at(row, column)];
      tile[row * kPitch + column] = value;
    }
  }
}

__device__ __forceinline__ unsigned pack(half_t, float low, float high) {
  return ptx_pack_half(low, high);
}
__device__ __forceinline__ unsigned pack(bfloat_t, float low, float high) {
  return ptx_pack_bfloat(low, high);
}
__device__ __forceinline__ void multiply(half_t, float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
  ptx_mma_half(c, a, b0, b1);
}
__device__ __forceinline__ void multiply(bfloat_t, float (&c)[4], const unsigned (&a)[4],
                                         unsigned b0, unsigned b1) {
  ptx_mma_bfloat(c, a, b0, b1);
}

// Two neighbouring column blocks as an operand of 16 columns.
template <typename T>
__device__ __forceinline__ void pack_operand(T, unsigned (&a)[4], const float (&left)[4],
                                             const float (&right)[4]) {
  a[0] = pack(T{}, left[0], left[1]);
  a[1] = pack(T{}, left[2], left[3]);
  a[2] = pack(T{}, right[0], right[1]);
  a[3] = pack(T{}, right[2], right[3]);
}

// s = q · kᵀ for the warp's 16 rows of q and all Keys rows of k.
template <int Depth, int Keys, typename T>
__device__ __forceinline__ void score_product(float (&s)[Keys / 8][4], const T* q, const T* k) {
  constexpr int kPitch = pitch_of<T>(Depth);
  const int lane = threadIdx.x & 31, matrix = lane >> 3, line = lane & 7;
#pragma unroll
  for (int n = 0; n < Keys / 8; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) s[n][x] = 0;
  }
#pragma unroll
  for (int d = 0; d < Depth; d += 16) {
    unsigned a[4];
    ptx_load_matrix(a, q + ((matrix & 1) * 8 + line) * kPitch + d + (matrix >> 1) * 8);
#pragma unroll
    for (int n = 0; n < Keys; n += 16) {
      unsigned b[4];
      ptx_load_matrix(b, k + (n + (matrix >> 1) * 8 + line) * kPitch + d + (matrix & 1) * 8);
      multiply(T{}, s[n / 8], a, b[0], b[1]);
      multiply(T{}, s[n / 8 + 1], a, b[2], b[3]);
    }
  }
}

// The same in fp32.
template <int Depth, int Keys>
__device__ __forceinline__ void score_product(float (&s)[Keys / 8][4], const float* q,
                                              const float* k) {
  constexpr int kPitch = pitch_of<float>(Depth);
  const int row = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int n = 0; n < Keys / 8; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) s[n][x] = 0;
  }
#pragma unroll 1
  for (int d = 0; d < Depth; d += 4) {
    const float4 low = *reinterpret_cast<const float4*>(q + row * kPitch + d);
    const float4 high = *reinterpret_cast<const float4*>(q + (row + 8) * kPitch + d);
#pragma unroll
    for (int n = 0; n < Keys / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float4 b = *reinterpret_cast<const float4*>(k + (n * 8 + pair + e) * kPitch + d);
        s[n][e] += low.x * b.x + low.y * b.y + low.z * b.z + low.w * b.w;
        s[n][e + 2] += high.x * b.x + high.y * b.y + high.z * b.z + high.w * b.w;
      }
    }
  }
}

// o += p · v for the warp's 16 rows; v has Keys rows of Depth columns.
template <int Depth, int Keys, typename T>
__device__ __forceinline__ void value_product(float (&o)[Depth / 8][4],
                                              const float (&p)[Keys / 8][4], const T* v, T*) {
  constexpr int kPitch = pitch_of<T>(Depth);
  const int lane = threadIdx.x & 31, matrix = lane >> 3, line = lane & 7;
#pragma unroll
  for (int n = 0; n < Keys; n += 16) {
    unsigned a[4];
    pack_operand(T{}, a, p[n / 8], p[n / 8 + 1]);
#pragma unroll
    for (int d = 0; d < Depth; d += 16) {
      unsigned b[4];
      ptx_load_matrix_transposed(
          b, v + (n + (matrix & 1) * 8 + line) * kPitch + d + (matrix >> 1) * 8);
      multiply(T{}, o[d / 8], a, b[0], b[1]);
      multiply(T{}, o[d / 8 + 1], a, b[2], b[3]);
    }
  }
}

// The same in fp32; p is staged in `staged`, the warp's own 16 rows of Keys columns in shared
// memory.
template <int Depth, int Keys>
__device__ __forceinline__ void value_product(float (&o)[Depth / 8][4],
                                              const float (&p)[Keys / 8][4], const float* v,
                                              float* staged) {
  constexpr int kPitch = pitch_of<float>(Depth), kStaged = pitch_of<float>(Keys);
  const int row = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < Keys / 8; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      staged[(row + (x >> 1) * 8) * kStaged + n * 8 + pair + (x & 1)] = p[n][x];
    }
  }
  __syncwarp();
#pragma unroll 2
  for (int key = 0; key < Keys; ++key) {
    const float low = staged[row * kStaged + key], high = staged[(row + 8) * kStaged + key];
#pragma unroll
    for (int n = 0; n < Depth / 8; ++n) {
      const float2 b = *reinterpret_cast<const float2*>(v + key * kPitch + n * 8 + pair);
      o[n][0] += low * b.x;
      o[n][1] += low * b.y;
      o[n][2] += high * b.x;
      o[n][3] += high * b.y;
    }
  }
}
