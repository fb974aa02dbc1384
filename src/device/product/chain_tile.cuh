// What a block of two chained products (device/product/chain.cuh) multiplies and has in shared
// memory.
//
// A stage of its ring has, of the first product, 64 elements of the contracted axis: those of the
// slab's rows, then those of the block's columns of each matrix, in chunks of 64. Then stages have
// tiles of 64 columns of the second product, each the chunks of its rows that are the block's
// columns of the first.
#pragma once

#include "device/hopper.cuh"
#include "device/product/ptx_chain.cuh"

constexpr int kChunk = kSlabColumns, kChunkBytes = kChunk * kSlabRowBytes;

// Config: T; kRows of a slab, a multiple of 8; kDepth, kInner and kWidth, the contracted axes of
// both products and the columns of the second one; kProducts, the first ones; kChunks of the
// columns that a block has; kBlocks of a cluster; kClusters that divide the columns of a slab;
// kGroups, the warpgroups that multiply; kStages of the ring, a multiple of kGroups unless it has
// all; kFirstByRows and kSecondByRows: columns are contiguous along the contracted axis.
template <typename Config>
struct ChainTile : Config {
  using C = Config;
  static constexpr int kThreads = C::kGroups * 128;
  static constexpr int kSteps = (C::kDepth + kChunk - 1) / kChunk;
  static constexpr int kTiles = (C::kWidth + kChunk - 1) / kChunk;
  static constexpr int kAll = kSteps + (kTiles + C::kProducts - 1) / C::kProducts;  // stages
  static constexpr int kColumns = C::kChunks * kChunk;                              // of a product
  static constexpr int kRowBytes = C::kRows * kSlabRowBytes;
  static constexpr int kColumnBytes = C::kChunks * kChunkBytes;  // of one product or tile
  static constexpr int kStageBytes = kRowBytes + C::kProducts * kColumnBytes;
  // Warpgroups that add the first product, each in floats of its own. Pitches let a warp's
  // fragments lie in different banks.
  static constexpr int kAdders = kSteps < C::kGroups ? kSteps : C::kGroups;
  static constexpr int kFirstPitch = C::kProducts * kColumns + 4;
  static constexpr int kSecondPitch = kTiles * kChunk + 4;
  static constexpr int kFirstBytes = kAdders * C::kRows * kFirstPitch * 4;
  static constexpr int kSecondBytes = C::kRows * kSecondPitch * 4;
  // The ring, the mapped columns, sums of one product after the other, barriers.
  static constexpr int kMappedAt = C::kStages * kStageBytes;
  static constexpr int kSumsAt = kMappedAt + C::kChunks * kRowBytes;
  static constexpr int kBarriersAt =
      kSumsAt + (kFirstBytes > kSecondBytes ? kFirstBytes : kSecondBytes);
  // Groups of four columns of the result: of a row, and those that a block finishes.
  static constexpr int kFours = (C::kWidth + 3) / 4;
  static constexpr int kOwnFours = (C::kRows * kFours + C::kBlocks - 1) / C::kBlocks;
  // A warpgroup keeps a stage of the first product until its next one is there.
  static_assert(C::kStages >= kAll || (C::kStages % C::kGroups == 0 &&
                                       (kSteps <= C::kGroups || C::kStages >= 2 * C::kGroups)));
};

// The block's slab of rows and its columns of the first product.
template <typename Tile>
struct ChainPlace {
  int slab, row, part, cluster, column;

  __device__ __forceinline__ ChainPlace()
      : slab(static_cast<int>(blockIdx.y)),
        row(slab * Tile::kRows),
        part(static_cast<int>(blockIdx.x) % Tile::kBlocks),
        cluster(static_cast<int>(blockIdx.x) / Tile::kBlocks),
        column(static_cast<int>(blockIdx.x) * Tile::kColumns) {}
};

// Starts d += wᵀ · xᵀ for 64 columns of w, all rows of x, and 64 elements of the contracted axis.
template <typename T, int Rows, bool ByRows>
__device__ __forceinline__ void start_chunk(float (&d)[Rows / 8][4], unsigned w, unsigned x) {
  constexpr int kStep = 16, kAdvance = ByRows ? kStep * 2 : kStep * kSlabRowBytes;
  const unsigned long long a = matrix_descriptor(w, kChunkBytes);
  const unsigned long long b = matrix_descriptor(x, Rows * kSlabRowBytes);
#pragma unroll
  for (int k = 0; k < kChunk / kStep; ++k) {
    const unsigned long long left = a + (k * kAdvance >> 4), right = b + (k * kStep * 2 >> 4);
    if constexpr (ByRows) {
      Product<T, Rows>::score(d, left, right, 1);
    } else {
      Product<T, Rows>::across(d, left, right, 1);
    }
  }
}

template <int M, int N>
__device__ __forceinline__ void clear_sums(float (&d)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int x = 0; x < 4; ++x) d[m][n][x] = 0;
    }
  }
}
template <int M, int N>
__device__ __forceinline__ void pin_sums(float (&d)[M][N][4]) {
#pragma unroll
  for (int m = 0; m < M; ++m) pin_registers(d[m]);
}

// Stores a warpgroup's 64 columns of all rows, in rows of Pitch floats.
template <int Pitch, int N>
__device__ __forceinline__ void store_columns(float* to, const float (&d)[N][4]) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const int column = (static_cast<int>(threadIdx.x) >> 5 & 3) * 16 + (lane >> 2);
  float* const at = to + (lane & 3) * 2 * Pitch + column;
#pragma unroll
  for (int n = 0; n < N; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) at[(n * 8 + (x & 1)) * Pitch + (x >> 1) * 8] = d[n][x];
  }
}
