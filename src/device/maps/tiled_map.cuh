// Elementwise kernels whose results lie along another axis than some of their operands, as
// transpositions do. A block computes a tile of points of two axes: the results' axis ("along") and
// the one along which the operands lie ("across"). Operands pass through shared memory: their lines
// are loaded as vectors across, and read along.
#pragma once

#include "device/maps/group.cuh"
#include "device/math.cuh"
#include "device/ptx.cuh"
#include "device/types.cuh"

// Points of a tile along and across, and threads of its block. A thread computes groups of Width
// adjacent points along, or, where results cannot be stored as vectors, single points; either in
// Columns adjacent columns across, which fill a word of the smallest operand.
template <int Width_, int Columns_, int Along_, int Across_, int Threads_>
struct MapTile {
  static constexpr int Width = Width_, Columns = Columns_, Threads = Threads_;
  static constexpr int Along = Along_, Across = Across_;
};

// An operand's part of a tile, by lines across. Lines are a word apart from full banks: neither 32
// lines nor 32 / Width groups of them beside Width words have bank conflicts.
template <class Tile, typename T>
struct OperandTile {
  static constexpr int kBytes = static_cast<int>(sizeof(T));
  static constexpr int kPitch = Tile::Across * kBytes / 4 + (kBytes > 4 ? 2 : 1);  // words
  unsigned words[Tile::Along * kPitch];
};

// Loads the lines of an operand, whose elements begin at from + start(line). `lines` of them exist,
// and `columns` elements of each. `vector`: every line starts at a multiple of 16 bytes, and its
// elements fill whole chunks of as many.
template <class Tile, typename T, class Start>
__device__ __forceinline__ void fill_tile(OperandTile<Tile, T>& tile, const T* from,
                                          const Start& start, long long lines, long long columns,
                                          bool vector) {
  constexpr int kChunk = 16 / static_cast<int>(sizeof(T)), kChunks = Tile::Across / kChunk;
  constexpr int kTotal = Tile::Along * kChunks;
  constexpr int kCount = (kTotal + Tile::Threads - 1) / Tile::Threads;
  union Chunk {
    uint4 vector;
    unsigned words[4];
    T elements[kChunk];
    __device__ __forceinline__ Chunk() {}
  };
  Chunk chunks[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int number = i * Tile::Threads + static_cast<int>(threadIdx.x);
    const int line = number / kChunks, column = number % kChunks * kChunk;
    if (number >= kTotal || line >= lines) continue;
    const T* const first = from + start(line) + column;
    if (vector) {
      if (column < columns) chunks[i].vector = *reinterpret_cast<const uint4*>(first);
    } else {
#pragma unroll
      for (int v = 0; v < kChunk; ++v) {
        if (column + v < columns) chunks[i].elements[v] = first[v];
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int number = i * Tile::Threads + static_cast<int>(threadIdx.x);
    if (number >= kTotal) continue;
    const int at = number / kChunks * OperandTile<Tile, T>::kPitch + number % kChunks * 4;
#pragma unroll
    for (int w = 0; w < 4; ++w) tile.words[at + w] = chunks[i].words[w];
  }
}

// A thread's columns: from the point `across` of `end` of a plane on, at (line, column) of the
// tile.
template <class Tile>
struct TilePoint {
  long long plane, across, end;
  int line, column;

  // compute(c, across) for the columns that the plane has, of which c is the number.
  template <class Compute>
  __device__ __forceinline__ void columns(const Compute& compute) const {
#pragma unroll
    for (int c = 0; c < Tile::Columns; ++c) {
      if (across + c >= end) break;
      compute(c, across + c);
    }
  }
};

// The elements of Count lines in a thread's columns.
template <class Tile, int Count, typename T>
struct TileElements {
  static constexpr int kWords = Tile::Columns * static_cast<int>(sizeof(T)) / 4;
  static_assert(kWords >= 1, "columns fill words");
  union Columns {
    unsigned words[kWords];
    T elements[Tile::Columns];
    __device__ __forceinline__ Columns() {}
  };
  Columns lines[Count];

  __device__ __forceinline__ TileElements(const OperandTile<Tile, T>& tile,
                                          const TilePoint<Tile>& at) {
    using Operand = OperandTile<Tile, T>;
    const int first = at.line * Operand::kPitch + at.column * Operand::kBytes / 4;
#pragma unroll
    for (int v = 0; v < Count; ++v) {
#pragma unroll
      for (int w = 0; w < kWords; ++w) {
        lines[v].words[w] = tile.words[first + v * Operand::kPitch + w];
      }
    }
  }
  // Of the column that is c after the thread's first one.
  __device__ __forceinline__ Values<ValueOf<T>, Count> column(int c) const {
    Values<ValueOf<T>, Count> result;
#pragma unroll
    for (int v = 0; v < Count; ++v) result[v] = Element<T>::get(lines[v].elements[c]);
    return result;
  }
};

// Those of the lines of a group.
template <class Tile, int Width, typename T>
__device__ __forceinline__ TileElements<Tile, Width, T> tile_elements(
    const Group<Width>&, const OperandTile<Tile, T>& tile, const TilePoint<Tile>& at) {
  return {tile, at};
}

// Calls compute(group, point) for every Width points of a thread's columns that the tile has. A
// warp computes 32 lines.
template <class Tile, int Width, class Compute>
__device__ __forceinline__ void compute_tile(long long plane, long long begin_along,
                                             long long begin_across, long long along,
                                             long long across, const Compute& compute) {
  constexpr int kGroups = 32 / Width, kColumns = Width * Tile::Columns;  // of a warp
  constexpr int kAlong = Tile::Along / 32, kUnits = kAlong * (Tile::Across / kColumns);
  constexpr int kWarps = Tile::Threads / 32;
  static_assert(Tile::Along % 32 == 0 && Tile::Across % kColumns == 0 && kUnits % kWarps == 0,
                "warps share a tile evenly");
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kUnits / kWarps; ++i) {
    const int unit = i * kWarps + warp;
    const int line = unit % kAlong * 32 + lane % kGroups * Width;
    const int column = unit / kAlong * kColumns + lane / kGroups * Tile::Columns;
    const long long at_along = begin_along + line, at_across = begin_across + column;
    if (at_along < along && at_across < across) {
      compute(group_from<Width>(at_along, along, Width > 1),
              TilePoint<Tile>{plane, at_across, across, line, column});
    }
  }
}

// Every point of `planes` of along · across points.
//   fill(plane, along, across)   loads the tile that begins there
//   groups(group, at)            computes the points of a Group<Width> in each column of `at`;
//                                where `vector`
//   singles(group, at)           likewise of a Group<1>; elsewhere
template <class Tile, class Fill, class Groups, class Singles>
__device__ __forceinline__ void tiled_map(long long planes, long long along, long long across,
                                          bool vector, const Fill& fill, const Groups& groups,
                                          const Singles& singles) {
  const long long tiles_across = (across + Tile::Across - 1) / Tile::Across;
  const long long tiles = (along + Tile::Along - 1) / Tile::Along * tiles_across;
  for (long long tile = blockIdx.x; tile < planes * tiles; tile += gridDim.x) {
    const long long plane = floor_div(tile, tiles), in_plane = tile - plane * tiles;
    const long long row = floor_div(in_plane, tiles_across);
    const long long begin_along = row * Tile::Along;
    const long long begin_across = (in_plane - row * tiles_across) * Tile::Across;
    fill(plane, begin_along, begin_across);
    __syncthreads();
    if (vector) {
      compute_tile<Tile, Tile::Width>(plane, begin_along, begin_across, along, across, groups);
    } else {
      compute_tile<Tile, 1>(plane, begin_along, begin_across, along, across, singles);
    }
    __syncthreads();
  }
}
