// Rows of R that a block multiplies with the states of its batch tile at every step.
//
// Of the block's rows, gate after gate, these are `Count` from row `First` on: row i is unit
// i % kUnits of gate i / kUnits. Warps divide the rows into groups, and k into slices, whose sums
// the reader adds. Of the tiles (tiles.cuh) along k, the first kHeld of each slice are in
// registers, the next kResident of all slices in shared memory; the others are read from memory,
// mostly L2, at every step.
#pragma once

#include "device/recurrent/tiles.cuh"
#include "device/types.cuh"

__host__ __device__ constexpr int divide_up(int a, int b) { return (a + b - 1) / b; }

// The least power of two that divides `tiles` into parts of at most `most`, up to `warps`.
__host__ __device__ constexpr int row_groups(int tiles, int most, int warps) {
  int groups = 1;
  while (groups < warps && divide_up(tiles, groups) > most) groups *= 2;
  return groups;
}

// R of one direction and where the block's units begin. Units from `hidden` on count as zeros.
// `vector`: rows are aligned to 16 bytes.
template <typename T>
struct BlockWeights {
  const T* r;
  int first_unit, hidden;
  bool vector;

  // 16 bytes of a row from element k on; zeros where the row or the elements do not exist.
  __device__ __forceinline__ uint4 load(int gate, int unit, int k, bool exists) const {
    constexpr int kWidth = 16 / sizeof(T);
    union {
      uint4 words;
      T elements[kWidth];
    } group;
    group.words = make_uint4(0, 0, 0, 0);
    if (!exists || first_unit + unit >= hidden || k >= hidden) return group.words;
    const T* const from =
        r + (static_cast<long long>(gate) * hidden + first_unit + unit) * hidden + k;
    if (vector) return *reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if (k + i < hidden) group.elements[i] = from[i];
    }
    return group.words;
  }
};

template <typename Config, int First, int Count>
struct BlockRows {
  using T = typename Config::Element;
  using Tile = StateTile<T, Config::kBatch>;
  static constexpr int kMost = sizeof(T) == 2 ? 2 : 4;  // tiles of a warp at once
  static constexpr int kTiles = divide_up(Count, Tile::kRows);
  static constexpr int kPlaces = divide_up(Config::kHidden, Tile::kDepth);  // along k
  static constexpr int kGroups = row_groups(kTiles, kMost, Config::kWarps);
  static constexpr int kShare = divide_up(kTiles, kGroups);
  static constexpr int kEach = kShare < kMost ? kShare : kMost;
  static constexpr int kRounds = divide_up(kTiles, kGroups* kEach);
  static constexpr int kWarpSlices = Config::kWarps / kGroups;
  static constexpr int kSlices = kWarpSlices < kPlaces ? kWarpSlices : kPlaces;
  static constexpr int kHeld = Config::kHeld;
  static constexpr int kBegin = kHeld * kSlices < kPlaces ? kHeld * kSlices : kPlaces;
  static constexpr int kRest = kPlaces - kBegin;
  static constexpr int kResident = Config::kResident < kRest ? Config::kResident : kRest;
  static constexpr int kEnd = kBegin + kResident;
  static constexpr int kWords = kTiles * kResident * 64;  // of 16 bytes, in shared memory
  // Sums of a slice: rows of a batch row, with a pitch that avoids bank conflicts.
  static constexpr int kPitch = kTiles * Tile::kRows + 4;
  static constexpr int kSumFloats = kSlices * Config::kBatch * kPitch;
  static_assert(kResident == kRest || kResident % kSlices == 0, "slices have equal shares");
  static_assert(kHeld == 0 || kRounds == 1, "a warp holds the tiles of its one round");
  using Words = uint4[kEach][2];

  uint4* resident;  // kWords of shared memory
  Words held[kHeld > 0 ? kHeld : 1];

  // Reads what stays, by all threads.
  __device__ __forceinline__ void fill(const BlockWeights<T>& weights) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      fetch(held[i], weights, group() * kEach, slice() + i * kSlices, threadIdx.x % 32);
    }
    if constexpr (kResident > 0) {
#pragma unroll 4
      for (int i = threadIdx.x; i < kWords; i += Config::kWarps * 32) {
        const int tile = i / 64 / kResident, place = kBegin + i / 64 % kResident;
        resident[i] = load(weights, tile, place, i / 32 % 2, i % 32);
      }
    }
  }

  // sums[slice][batch row][row] of the states h.
  __device__ __forceinline__ void multiply(const BlockWeights<T>& weights, const T* h,
                                           float* sums) const {
    if (kSlices < kWarpSlices && slice() >= kSlices) return;
#pragma unroll 1
    for (int round = 0; round < kRounds; ++round) {
      multiply_tiles(weights, h, sums + slice() * Config::kBatch * kPitch,
                     (round * kGroups + group()) * kEach);
    }
  }

  // The sum of all slices.
  static __device__ __forceinline__ float sum(const float* sums, int batch, int row) {
    float total = 0;
#pragma unroll
    for (int slice = 0; slice < kSlices; ++slice) {
      total += sums[(slice * Config::kBatch + batch) * kPitch + row];
    }
    return total;
  }

 private:
  static __device__ __forceinline__ int group() { return threadIdx.x / 32 % kGroups; }
  static __device__ __forceinline__ int slice() { return threadIdx.x / 32 / kGroups; }

  __device__ __forceinline__ void multiply_tiles(const BlockWeights<T>& weights, const T* h,
                                                 float* sums, int first) const {
    const int lane = threadIdx.x % 32, slice = this->slice();
    float own[kEach][Tile::kSums] = {};
    Words next;
    if constexpr (kEnd < kPlaces) fetch(next, weights, first, kEnd + slice, lane);
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int place = slice + i * kSlices;
      if ((i + 1) * kSlices > kPlaces && place >= kPlaces) break;
      Tile::multiply(own, held[i], h + place * Tile::kDepth, Config::kPitch, lane);
    }
#pragma unroll 4
    for (int place = kBegin + slice; place < kEnd; place += kSlices) {
      Words r;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const int tile = tile_of(first, i) * kResident + place - kBegin;
#pragma unroll
        for (int v = 0; v < 2; ++v) r[i][v] = resident[(tile * 2 + v) * 32 + lane];
      }
      Tile::multiply(own, r, h + place * Tile::kDepth, Config::kPitch, lane);
    }
    if constexpr (kEnd < kPlaces) {
#pragma unroll 2
      for (int place = kEnd + slice; place < kPlaces; place += kSlices) {
        Words r;
#pragma unroll
        for (int i = 0; i < kEach; ++i) {
#pragma unroll
          for (int v = 0; v < 2; ++v) r[i][v] = next[i][v];
        }
        fetch(next, weights, first, place + kSlices, lane);
        Tile::multiply(own, r, h + place * Tile::kDepth, Config::kPitch, lane);
      }
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      if (first + i < kTiles) Tile::store(own[i], sums + (first + i) * Tile::kRows, kPitch, lane);
    }
  }

  // Tiles behind the last one repeat it, and are not stored.
  static __device__ __forceinline__ int tile_of(int first, int i) {
    return kRounds * kGroups * kEach == kTiles ? first + i : min(first + i, kTiles - 1);
  }
  static __device__ __forceinline__ uint4 load(const BlockWeights<T>& weights, int tile, int place,
                                               int v, int lane) {
    const int row = tile * Tile::kRows + Tile::row(lane, v), own = First + row;
    return weights.load(own / Config::kUnits, own % Config::kUnits,
                        place * Tile::kDepth + Tile::column(lane, v), row < Count);
  }
  // Zeros for a place behind the last one.
  static __device__ __forceinline__ void fetch(Words& to, const BlockWeights<T>& weights, int first,
                                               int place, int lane) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        to[i][v] = load(weights, tile_of(first, i), place, v, lane);
      }
    }
  }
};
