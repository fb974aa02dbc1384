// Products of floats by TF32 tensor cores, whose operands are floats in two parts (tf32_parts.cuh).
// A stage has 32 terms. TMA copies floats as pairs of 16-bit elements; warps of their own split the
// columns in shared memory, where wgmma reads them, and the multiplying warps split their rows in
// registers.
#pragma once

#include "device/product/product_ring.cuh"
#include "device/product/tf32_parts.cuh"
#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"

constexpr int kPartTerms = 32, kChunkTerms = 4, kPartChunks = kPartTerms / kChunkTerms;
constexpr int kPartBlock = 32;  // rows, or columns, which a warp splits at once
constexpr int kPartBlockBytes = kPartBlock * kSlabRowBytes;

// The place of a chunk of 16 bytes in rows of 128 bytes that TMA has swizzled.
__device__ __forceinline__ int swizzled_chunk(int row, int chunk) {
  return row * kSlabRowBytes + ((chunk ^ (row & (kSwizzleRows - 1))) << 4);
}

// Loads `Lines` rows or columns of a stage from `line` on: one box where they are contiguous along
// the contracted axis (ByLines), or blocks of 32 of them.
template <bool ByLines, int Lines>
__device__ __forceinline__ void load_lines(unsigned to, const TensorMap& map, unsigned full,
                                           int line, int step, int batch) {
  if constexpr (ByLines) {
    ptx_copy_box(to, map, full, step * kStageDepth, line, batch);
  } else {
#pragma unroll
    for (int block = 0; block < (Lines + kPartBlock - 1) / kPartBlock; ++block) {
      ptx_copy_box(to + block * kPartBlockBytes, map, full, 2 * (line + block * kPartBlock),
                   step * kPartTerms, batch);
    }
  }
}

// Replaces 32 columns of a stage by their first parts, contiguous along the terms, and stores their
// second parts at `second`.
template <bool ByRows>
__device__ __forceinline__ void split_columns(char* first, char* second) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  float x[kPartTerms];
#pragma unroll
  for (int c = 0; c < kPartChunks; ++c) {
    if constexpr (ByRows) {
      const float4 chunk = *reinterpret_cast<const float4*>(first + swizzled_chunk(lane, c));
      x[c * 4] = chunk.x, x[c * 4 + 1] = chunk.y, x[c * 4 + 2] = chunk.z, x[c * 4 + 3] = chunk.w;
    } else {
#pragma unroll
      for (int i = 0; i < kChunkTerms; ++i) {
        const int k = c * kChunkTerms + i;
        x[k] = *reinterpret_cast<const float*>(first + swizzled_chunk(k, lane / kChunkTerms) +
                                               lane % kChunkTerms * 4);
      }
    }
  }
  __syncwarp();
#pragma unroll
  for (int c = 0; c < kPartChunks; ++c) {
    PartedOperand<2, kChunkTerms> of;
#pragma unroll
    for (int i = 0; i < kChunkTerms; ++i) of.set(i, x[c * kChunkTerms + i]);
    const int at = swizzled_chunk(lane, c);
    *reinterpret_cast<uint4*>(first + at) = {of.part[0][0], of.part[0][1], of.part[0][2],
                                             of.part[0][3]};
    *reinterpret_cast<uint4*>(second + at) = {of.part[1][0], of.part[1][1], of.part[1][2],
                                              of.part[1][3]};
  }
}

// The barriers of stages whose columns are split.
template <typename Tile>
struct SplitBarriers {
  static constexpr int kBlocks = Tile::kColumns / kPartBlock, kArrivals = Tile::kProducts * kBlocks;
  unsigned barriers;

  __device__ __forceinline__ unsigned at(int use) const {
    return barriers + use % Tile::kStages * 8;
  }
  __device__ __forceinline__ void init() const {
    for (int i = 0; i < Tile::kStages; ++i) ptx_barrier_init(at(i), kArrivals);
  }
  __device__ __forceinline__ void wait_together(int use) const {
    while (!__all_sync(0xffffffffu, ptx_barrier_try_wait(at(use), use / Tile::kStages & 1))) {
    }
  }
};

// Splits the columns of all stages; `warp` of Tile::kSplitWarps.
template <typename Tile>
__device__ __forceinline__ void split_stages(char* stages, const Ring<Tile::kStages>& ring,
                                             const SplitBarriers<Tile>& split, int steps,
                                             int warp) {
  using Split = SplitBarriers<Tile>;
  for (int i = warp; i < steps * Split::kArrivals; i += Tile::kSplitWarps) {
    const int use = i / Split::kArrivals, block = i % Split::kArrivals;
    ring.wait_full_together(use);
    char* const first = stages + use % Tile::kStages * Tile::kStageBytes + Tile::kRowBytes +
                        block / Split::kBlocks * Tile::kColumnBytes +
                        block % Split::kBlocks * kPartBlockBytes;
    split_columns<Tile::kByRows>(first, first + Tile::kColumnBytes / 2);
    ptx_async_proxy_fence();
    __syncwarp();
    if ((threadIdx.x & 31) == 0) ptx_barrier_arrive(split.at(use));
  }
}

// The place of a row's term in a stage. ByRows: of rows that are contiguous along the terms.
template <bool ByRows>
__device__ __forceinline__ int place_of_term(int row, int k) {
  if constexpr (ByRows) return swizzled_chunk(row, k / kChunkTerms) + k % kChunkTerms * 4;
  const int inside = row % kPartBlock;
  return row / kPartBlock * kPartBlockBytes + swizzled_chunk(k, inside / kChunkTerms) +
         inside % kChunkTerms * 4;
}

// Terms [8 i, 8 i + 8) of the 16 rows of the thread's warp, for each i.
template <bool ByRows>
__device__ __forceinline__ void load_row_parts(PartedOperand<2, 4> (&a)[kPartChunks / 2],
                                               const char* rows) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const int first = static_cast<int>(threadIdx.x >> 5) * 16 + (lane >> 2);
#pragma unroll
  for (int i = 0; i < kPartChunks / 2; ++i) {
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      const int k = (2 * i + x / 2) * kChunkTerms + (lane & 3);
      const int at = place_of_term<ByRows>(first + x % 2 * 8, k);
      a[i].set(x, *reinterpret_cast<const float*>(rows + at));
    }
  }
}

// d[p] = Σ over `steps` > 0 stages, for the warpgroup's 64 rows. Tensor cores truncate their sums,
// so that those of a stage are added on the scalar units.
template <typename Tile>
__device__ __forceinline__ void multiply_part_stages(
    float (&d)[Tile::kProducts][Tile::kColumns / 8][4], const char* stages, unsigned ring_at,
    const Ring<Tile::kStages>& ring, const SplitBarriers<Tile>& split, int steps) {
  using Of = Product<float, Tile::kColumns>;
  clear(d);
  float sums[Tile::kProducts][Tile::kColumns / 8][4];
  int i = 0;
#pragma unroll 1
  do {
    const unsigned at = i % Tile::kStages * Tile::kStageBytes;
    ring.wait_full_together(i);
    PartedOperand<2, 4> a[kPartChunks / 2];
    load_row_parts<!Tile::kRowsByTerms>(a, stages + at);
    split.wait_together(i);
    pin_products(sums);
    ptx_product_fence();
#pragma unroll
    for (int p = 0; p < Tile::kProducts; ++p) {
      const unsigned columns = ring_at + at + Tile::kRowBytes + p * Tile::kColumnBytes;
      const unsigned long long first = matrix_descriptor(columns, 0);
      const unsigned long long second = first + (Tile::kColumnBytes / 2 >> 4);
#pragma unroll
      for (int k = 0; k < kPartChunks / 2; ++k) {
        Of::score(sums[p], a[k].part[1], first + 2 * k, k > 0);
        Of::score(sums[p], a[k].part[0], second + 2 * k, 1);
        Of::score(sums[p], a[k].part[0], first + 2 * k, 1);
      }
    }
    ptx_product_commit();
    pin_products(sums);
    ptx_product_wait<0>();
    pin_products(sums);
    ring.release(i);
    add_products(d, sums);
  } while (++i < steps);
}
