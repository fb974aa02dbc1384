// Tiles of a matrix product on sm_90a, 128 rows by 256 columns: with narrower tiles the load
// bandwidth of an SM limits the tensor cores. One warp loads operands through a ring of TMA copies,
// two warpgroups multiply 64 rows each. Sums are staged in shared memory, rounded to the product's
// type; the warps compute their epilogue while the tensor cores compute the next tile.
#pragma once

#include "device/hopper.cuh"
#include "device/product/product_operands.cuh"
#include "device/product/product_ring.cuh"
#include "device/product/ptx_product.cuh"
#include "device/ptx_hopper.cuh"
#include "device/types.cuh"

constexpr int kTileRows = 128, kTileColumns = 256, kTileDepth = 64, kTileStages = 3;
constexpr int kRowBytes = kTileRows * kTileDepth * 2, kColumnBytes = kTileColumns * kTileDepth * 2;
constexpr int kTileBytes = kRowBytes + kColumnBytes;
static_assert(kTileDepth == kStageDepth);
// A warp has 16 rows of a tile; its staging buffer holds them in 16 bits, or half of them in fp32.
constexpr int kWarpLines = 16;
template <typename S>
constexpr int kStagedLines = kWarpLines * 2 / static_cast<int>(sizeof(S));
// The pitch of a staged row in elements: rows that are written together start in different banks.
template <typename S>
constexpr int kStagedPitch = kTileColumns + 16 / static_cast<int>(sizeof(S));

// Consecutive tiles go down a few rows of tiles before the next columns, so that concurrent tiles
// share operands in L2. A tile has `Columns` columns of each product.
template <int Columns>
__device__ __forceinline__ TilePlace place_tile(unsigned tile, unsigned rows, unsigned columns) {
  constexpr unsigned kTogether = 16;
  const unsigned batch = tile / (rows * columns), inside = tile % (rows * columns);
  const unsigned band = kTogether * columns, top = inside / band * kTogether;
  const unsigned height = min(rows - top, kTogether), at = inside % band;
  return {static_cast<int>((top + at % height) * kTileRows),
          static_cast<int>(at / height * Columns), static_cast<int>(batch)};
}

// A stage of the ring has a's rows over 64 elements of the contracted axis, then the columns of
// each b. Operands: of product_operands.cuh. Returns the next use.
template <bool ByRows, typename Operands, typename... Maps>
__device__ __forceinline__ unsigned load_tile(unsigned ring_at, const Ring<kTileStages>& ring,
                                              unsigned use, int steps, const TilePlace& place,
                                              const Operands& operands, const TensorMap& a,
                                              const Maps&... b) {
  constexpr int kColumns = kTileColumns / sizeof...(b);
  const typename Operands::Tile tile = operands.tile(place);
  for (int i = 0; i < steps; ++i, ++use) {
    const unsigned full = ring.acquire(use, kTileBytes - Operands::kMissingBytes);
    const unsigned to = ring_at + use % kTileStages * kTileBytes;
    tile.copy_rows(to, a, full, i);
    unsigned columns_at = to + kRowBytes;
    ((tile.template copy_columns<ByRows, kColumns>(columns_at, b, full, i),
      columns_at += kColumns * kTileDepth * 2),
     ...);
  }
  return use;
}

// The first line of the last tile that a warp finishes during step `step` of `steps`: the first
// steps take several lines together, so that their arithmetic overlaps.
__device__ __forceinline__ int finish_from(int step, int steps) {
  return min(step * max(2, (kWarpLines + steps - 1) / steps), kWarpLines);
}

// d = Σ over `steps` uses of the ring, for the warpgroup's 64 rows in the fragments of
// attention.cuh. meanwhile(i) runs while the products of step i are in flight. Returns the next
// use.
template <typename T, bool ByRows, typename Meanwhile>
__device__ __forceinline__ unsigned multiply_tile(float (&d)[kTileColumns / 8][4], unsigned ring_at,
                                                  const Ring<kTileStages>& ring, unsigned use,
                                                  int steps, int group, Meanwhile meanwhile) {
  constexpr int kStep = 16, kGroupRows = kTileRows / 2;
  constexpr int kAdvance = ByRows ? kStep * 2 : kStep * kSlabRowBytes;
#pragma unroll
  for (int n = 0; n < kTileColumns / 8; ++n) {
#pragma unroll
    for (int x = 0; x < 4; ++x) d[n][x] = 0;
  }
  for (int i = 0; i < steps; ++i, ++use) {
    ring.wait_full_together(use);
    const unsigned at = ring_at + use % kTileStages * kTileBytes;
    const unsigned long long a =
        matrix_descriptor(at + group * kGroupRows * kSlabRowBytes, kRowBytes);
    const unsigned long long b = matrix_descriptor(at + kRowBytes, kStageSlabBytes);
    pin_registers(d);
    ptx_product_fence();
#pragma unroll
    for (int k = 0; k < kTileDepth / kStep; ++k) {
      TileProduct<T, ByRows>::add(d, a + (k * kStep * 2 >> 4), b + (k * kAdvance >> 4));
    }
    ptx_product_commit();
    pin_registers(d);
    if (i > 0) {
      ptx_product_wait<1>();
      ring.release(use - 1);
    }
    meanwhile(i);
  }
  wait_products<0>(d);
  if (steps > 0) ring.release(use - 1);
  return use;
}

// Stages half r of the warp's rows, 8 of 16: line l of the tile is at l mod kStagedLines.
template <typename S>
__device__ __forceinline__ void stage_lines(const float (&d)[kTileColumns / 8][4], S* staged,
                                            int r) {
  const int lane = threadIdx.x & 31;
  S* row = staged + (r * 8 + (lane >> 2)) % kStagedLines<S> * kStagedPitch<S> + (lane & 3) * 2;
#pragma unroll
  for (int n = 0; n < kTileColumns / 8; ++n) {
    store_pair(row, n * 8, {d[n][2 * r], d[n][2 * r + 1]});
  }
}

template <int V, typename S>
__device__ __forceinline__ void staged_group(float (&p)[V], const S* from) {
  load_group<V>(p, from, 0, V, V * sizeof(S) >= 16);
}
