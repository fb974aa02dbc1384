// A ring of stages of both operands of products on sm_90a: 64 elements of 16 bits of the contracted
// axis, or 64 pairs of 8 bits, first of the rows, then of the columns of each product, as TMA
// copies them. Warpgroups multiply 64 rows each by wgmma.
//
// A tile has T, kProducts, kColumns, kByRows (the columns are contiguous along the contracted
// axis; so they are of 8 bits), kStages, kRowBytes and kColumnBytes of a stage, and their sum
// kStageBytes.
#pragma once

#include "device/hopper.cuh"
#include "device/ptx_hopper.cuh"

constexpr int kStageDepth = kSlabColumns;
constexpr int kStageSlabBytes = kStageDepth * kSlabRowBytes;  // 64 columns that lie side by side

// Loads one product's columns of a stage: rows of it (ByRows) or slabs of 64 columns.
template <bool ByRows, int Columns>
__device__ __forceinline__ void load_columns(unsigned to, const TensorMap& b, unsigned full,
                                             int column, int depth, int batch) {
  if constexpr (ByRows) {
    ptx_copy_box(to, b, full, depth, column, batch);
  } else {
    constexpr int kSlabs = (Columns + kSlabColumns - 1) / kSlabColumns;
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) {
      ptx_copy_box(to + slab * kStageSlabBytes, b, full, column + slab * kSlabColumns, depth,
                   batch);
    }
  }
}

// Starts d = a · b (+ d if `add`) of a stage.
template <typename Tile>
__device__ __forceinline__ void start_stage(float (&d)[Tile::kColumns / 8][4], unsigned long long a,
                                            unsigned long long b, bool add) {
  using Of = Product<typename Tile::T, Tile::kColumns>;
  constexpr int kStep = 16;
  constexpr int kAdvance = Tile::kByRows ? kStep * 2 : kStep * kSlabRowBytes;
#pragma unroll
  for (int k = 0; k < kStageDepth / kStep; ++k) {
    const unsigned long long left = a + (k * kStep * 2 >> 4), right = b + (k * kAdvance >> 4);
    if constexpr (Tile::kByRows) {
      Of::score(d, left, right, add || k > 0);
    } else {
      Of::value(d, left, right, add || k > 0);
    }
  }
}

template <int Products, int N>
__device__ __forceinline__ void pin_products(float (&d)[Products][N][4]) {
#pragma unroll
  for (int p = 0; p < Products; ++p) pin_registers(d[p]);
}

template <int Products, int N>
__device__ __forceinline__ void clear(float (&d)[Products][N][4]) {
#pragma unroll
  for (int p = 0; p < Products; ++p) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int x = 0; x < 4; ++x) d[p][n][x] = 0;
    }
  }
}

// d += sums.
template <int Products, int N>
__device__ __forceinline__ void add_products(float (&d)[Products][N][4],
                                             const float (&sums)[Products][N][4]) {
#pragma unroll
  for (int p = 0; p < Products; ++p) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
#pragma unroll
      for (int x = 0; x < 4; ++x) d[p][n][x] += sums[p][n][x];
    }
  }
}

// Starts the products of a stage in d, which it clears unless `add`.
template <typename Tile>
__device__ __forceinline__ void start_products(float (&d)[Tile::kProducts][Tile::kColumns / 8][4],
                                               unsigned at, bool add) {
  const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const unsigned long long a = matrix_descriptor(at + group * 64 * kSlabRowBytes, Tile::kRowBytes);
  pin_products(d);
  ptx_product_fence();
#pragma unroll
  for (int p = 0; p < Tile::kProducts; ++p) {
    const unsigned columns = at + Tile::kRowBytes + p * Tile::kColumnBytes;
    start_stage<Tile>(d[p], a, matrix_descriptor(columns, kStageSlabBytes), add);
  }
  ptx_product_commit();
  pin_products(d);
}

// d[p] = Σ over `steps` > 0 stages, for the warpgroup's 64 rows. ptxas serialises products of loops
// that may have none.
template <typename Tile>
__device__ __forceinline__ void multiply_stages(float (&d)[Tile::kProducts][Tile::kColumns / 8][4],
                                                unsigned ring_at, const Ring<Tile::kStages>& ring,
                                                int steps) {
  clear(d);
  int i = 0;
#pragma unroll 1
  do {
    ring.wait_full_together(i);
    start_products<Tile>(d, ring_at + i % Tile::kStages * Tile::kStageBytes, true);
    if (i > 0) {
      ptx_product_wait<1>();
      ring.release(i - 1);
    }
  } while (++i < steps);
  ptx_product_wait<0>();
  pin_products(d);
}

// The same for 8-bit floats. Tensor cores keep fewer bits of their sums than fp32 has (DeepSeek-AI,
// DeepSeek-V3, 2024, 3.3.2), so that a stage's sums are added on the scalar units.
template <typename Tile>
__device__ __forceinline__ void multiply_code_stages(
    float (&d)[Tile::kProducts][Tile::kColumns / 8][4], unsigned ring_at,
    const Ring<Tile::kStages>& ring, int steps) {
  clear(d);
  float sums[Tile::kProducts][Tile::kColumns / 8][4];
  int i = 0;
#pragma unroll 1
  do {
    ring.wait_full_together(i);
    start_products<Tile>(sums, ring_at + i % Tile::kStages * Tile::kStageBytes, false);
    ptx_product_wait<0>();
    pin_products(sums);
    ring.release(i);
    add_products(d, sums);
  } while (++i < steps);
}
