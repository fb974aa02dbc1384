// The products of attention.cuh for operands of any types, by the TF32 tensor cores: floats are two
// parts, 16-bit floats one (device/product/tf32_parts.cuh). The tensor cores truncate their sums:
// small products are summed apart from large ones, and a tile's sums are added to those of the
// tiles before as floats.
//
// Of 8 elements of the contracted axis, lane t of a quad has 2t and 2t + 1 where mma.sync has t and
// t + 4. Both operands are permuted alike, so that the sums are the same.
#pragma once

#include "device/attention.cuh"
#include "device/product/tf32_parts.cuh"
#include "device/ptx.cuh"
#include "device/types.cuh"

// Elements between rows of a tile that lanes read by pairs.
template <typename T>
__host__ __device__ constexpr int pair_pitch_of(int columns) {
  return columns + 8;
}

template <typename T>
__host__ __device__ constexpr int parts_of() {
  return sizeof(T) == 4 ? 2 : 1;
}

// Sums of N products of 16 rows and 8 columns in the tensor cores.
template <int N>
struct PartedSums {
  float large[N][4], small[N][4];

  __device__ __forceinline__ void clear_all() {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      clear(large[n]);
      clear(small[n]);
    }
  }

  // Adds a · b of 8 contracted elements. Sums that depend on each other are N products apart.
  template <int PartsA, int PartsB>
  __device__ __forceinline__ void add(const PartedOperand<PartsA, 4>& a,
                                      const PartedOperand<PartsB, 2> (&b)[N]) {
    if (PartsA == 2) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        ptx_mma_tf32(small[n], a.part[PartsA - 1], b[n].part[0][0], b[n].part[0][1]);
      }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) {
      ptx_mma_tf32(large[n], a.part[0], b[n].part[0][0], b[n].part[0][1]);
    }
    if (PartsB == 2) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        ptx_mma_tf32(small[n], a.part[0], b[n].part[PartsB - 1][0], b[n].part[PartsB - 1][1]);
      }
    }
  }

  __device__ __forceinline__ void add_to(float (&c)[4], int n) const {
#pragma unroll
    for (int x = 0; x < 4; ++x) c[x] += large[n][x] + small[n][x];
  }
};

// s = q · kᵀ for the warp's 16 rows of q and all Keys rows of k.
template <int Depth, int Keys, typename Q, typename K>
__device__ __forceinline__ void score_product_parts(float (&s)[Keys / 8][4], const Q* q,
                                                    const K* k) {
  constexpr int kQPitch = pair_pitch_of<Q>(Depth), kKPitch = pair_pitch_of<K>(Depth);
  constexpr int kBlocks = Keys / 8, kGroup = kBlocks % 4 == 0 ? 4 : 2, kLongest = 64;
  constexpr int kUnrolled = Depth > 64 ? 1 : 2;  // of large heads, registers
  const int row = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int n = 0; n < kBlocks; ++n) clear(s[n]);
#pragma unroll 1
  for (int from = 0; from < Depth; from += kLongest) {
    PartedSums<kGroup> sums[kBlocks / kGroup];
#pragma unroll
    for (int g = 0; g < kBlocks / kGroup; ++g) sums[g].clear_all();
#pragma unroll kUnrolled
    for (int step = 0; step < kLongest; step += 8) {
      const int d = from + step;
      if (Depth % kLongest != 0 && d >= Depth) break;
      float low[2], high[2];
      load_group<2>(low, q + row * kQPitch + d + pair, 0, 2, true);
      load_group<2>(high, q + (row + 8) * kQPitch + d + pair, 0, 2, true);
      PartedOperand<parts_of<Q>(), 4> a;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        a.set(2 * e, low[e]);
        a.set(2 * e + 1, high[e]);
      }
#pragma unroll
      for (int g = 0; g < kBlocks / kGroup; ++g) {
        PartedOperand<parts_of<K>(), 2> b[kGroup];
#pragma unroll
        for (int n = 0; n < kGroup; ++n) {
          float both[2];
          load_group<2>(both, k + ((g * kGroup + n) * 8 + row) * kKPitch + d + pair, 0, 2, true);
          b[n].set(0, both[0]);
          b[n].set(1, both[1]);
        }
        sums[g].add(a, b);
      }
    }
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) sums[n / kGroup].add_to(s[n], n % kGroup);
  }
}

// o += p · v for the warp's 16 rows of fp32 weights; v has Keys rows of Columns columns.
template <int Columns, int Keys, typename V>
__device__ __forceinline__ void value_product_parts(float (&o)[Columns / 8][4],
                                                    const float (&p)[Keys / 8][4], const V* v) {
  constexpr int kPitch = pitch_of<V>(Columns);
  constexpr bool kWide = Columns > 64;
  constexpr int kGroup = Columns % 32 == 0 && !kWide ? 4 : 2;
  const int column = (threadIdx.x & 31) >> 2, pair = (threadIdx.x & 3) * 2;
  PartedOperand<2, 4> a[Keys / 8];
#pragma unroll
  for (int n = 0; n < Keys / 8; ++n) {
    a[n].set(0, p[n][0]);
    a[n].set(1, p[n][2]);
    a[n].set(2, p[n][1]);
    a[n].set(3, p[n][3]);
  }
#pragma unroll
  for (int d = 0; d < Columns / 8; d += kGroup) {
    PartedSums<kGroup> sums;
    sums.clear_all();
#pragma unroll
    for (int n = 0; n < Keys / 8; ++n) {
      PartedOperand<parts_of<V>(), 2> b[kGroup];
#pragma unroll
      for (int c = 0; c < kGroup; ++c) {
        const V* const at = v + (n * 8 + pair) * kPitch + (d + c) * 8 + column;
        b[c].set(0, Element<V>::get(at[0]));
        b[c].set(1, Element<V>::get(at[kPitch]));
      }
      sums.add(a[n], b);
    }
#pragma unroll
    for (int c = 0; c < kGroup; ++c) sums.add_to(o[d + c], c);
  }
}
