// Products of rows of R with the states of a batch tile: out[row, b] += Σ_k R[row, k] · h[b, k]
// over tiles of R, of which each lane has two vectors of 16 bytes, contiguous along k as R is in
// memory.
//
// A warp multiplies `Tiles` tiles of the same k at once. h has rows of `pitch` elements in shared
// memory, aligned to 16 bytes. Batch rows: a multiple of 8.
#pragma once

#include "device/ptx.cuh"
#include "device/types.cuh"

// 16 rows of 32 16-bit elements, by tensor cores. The instruction's order of k within a tile is
// free, as long as both operands have the same one: element 2 p + x of the four words of a vector
// is of step p / 2, so that operands are read as they lie in memory.
template <typename T, int Batch>
struct StateTile {
  static constexpr int kRows = 16, kDepth = 32, kSums = Batch / 8 * 4;
  // The place of the lane's vector v.
  static __device__ __forceinline__ int row(int lane, int v) { return lane / 4 + 8 * v; }
  static __device__ __forceinline__ int column(int lane, int) { return lane % 4 * 8; }

  template <int Tiles>
  static __device__ __forceinline__ void multiply(float (&sums)[Tiles][kSums],
                                                  const uint4 (&r)[Tiles][2], const T* h, int pitch,
                                                  int lane) {
#pragma unroll
    for (int n = 0; n < Batch / 8; ++n) {
      const uint4 b =
          *reinterpret_cast<const uint4*>(h + (n * 8 + lane / 4) * pitch + lane % 4 * 8);
#pragma unroll
      for (int i = 0; i < Tiles; ++i) {
        float(&c)[4] = reinterpret_cast<float(&)[4]>(sums[i][n * 4]);
        const unsigned first[4] = {r[i][0].x, r[i][1].x, r[i][0].y, r[i][1].y};
        const unsigned second[4] = {r[i][0].z, r[i][1].z, r[i][0].w, r[i][1].w};
        product(T{}, c, first, b.x, b.y);
        product(T{}, c, second, b.z, b.w);
      }
    }
  }

  // to[batch row * pitch + row of the tile].
  static __device__ __forceinline__ void store(const float (&sums)[kSums], float* to, int pitch,
                                               int lane) {
#pragma unroll
    for (int x = 0; x < kSums; ++x) {
      to[(x / 4 * 8 + lane % 4 * 2 + x % 2) * pitch + lane / 4 + x % 4 / 2 * 8] = sums[x];
    }
  }

 private:
  static __device__ __forceinline__ void product(half_t, float (&c)[4], const unsigned (&a)[4],
                                                 unsigned b0, unsigned b1) {
    ptx_mma_half(c, a, b0, b1);
  }
  static __device__ __forceinline__ void product(bfloat_t, float (&c)[4], const unsigned (&a)[4],
                                                 unsigned b0, unsigned b1) {
    ptx_mma_bfloat(c, a, b0, b1);
  }
};

// 32 rows of 8 floats, by multiply-adds in fp32: a lane has a row.
template <int Batch>
struct StateTile<float, Batch> {
  static constexpr int kRows = 32, kDepth = 8, kSums = Batch;
  static __device__ __forceinline__ int row(int lane, int) { return lane; }
  static __device__ __forceinline__ int column(int, int v) { return 4 * v; }

  template <int Tiles>
  static __device__ __forceinline__ void multiply(float (&sums)[Tiles][kSums],
                                                  const uint4 (&r)[Tiles][2], const float* h,
                                                  int pitch, int) {
#pragma unroll
    for (int b = 0; b < Batch; ++b) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const float4 at = *reinterpret_cast<const float4*>(h + b * pitch + 4 * v);
#pragma unroll
        for (int i = 0; i < Tiles; ++i) {
          sums[i][b] = fmaf(__uint_as_float(r[i][v].x), at.x, sums[i][b]);
          sums[i][b] = fmaf(__uint_as_float(r[i][v].y), at.y, sums[i][b]);
          sums[i][b] = fmaf(__uint_as_float(r[i][v].z), at.z, sums[i][b]);
          sums[i][b] = fmaf(__uint_as_float(r[i][v].w), at.w, sums[i][b]);
        }
      }
    }
  }

  static __device__ __forceinline__ void store(const float (&sums)[kSums], float* to, int pitch,
                                               int lane) {
#pragma unroll
    for (int b = 0; b < Batch; ++b) to[b * pitch + lane] = sums[b];
  }
};
