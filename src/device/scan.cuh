// Running reductions along lines: y[i] = x[0] ⊕ ... ⊕ x[i]. Either the elements of a line are
// adjacent in memory, or lines lie beside each other.
//
// `Scan` is a generated functor:
//
//   State, Op        the type of a running value, and SumOp, ProdOp, MaxOp or MinOp
//   kWidth           adjacent elements of a group, which are loaded and stored together
//   kReverse         lines run from their last element on
//   kExclusive       y[i] leaves x[i] out
//   identity()       of Op
//   fetch(line, position, column, valid, x), finish(line, position, column, valid, y)
//                    a group of adjacent elements, of which `valid` (also 0 or less) exist; fetch
//                    makes the others the identity. Of adjacent elements of a line: from `position`
//                    on; of lines beside each other: from the line `column` on, at one position
//
// An exclusive result is the running value of the elements before, not a difference, so that
// infinities stay exact. The order of combination depends on sizes alone.
#pragma once

#include "device/maps/group.cuh"
#include "device/math.cuh"

// A tile of a line in the registers of Team threads, a power of two: Chunks groups of each. A warp
// has adjacent groups, so that its accesses are whole sectors.
template <typename Scan, int Team, int Chunks>
struct LineTile {
  using State = typename Scan::State;
  using Op = typename Scan::Op;
  static constexpr int kWidth = Scan::kWidth;
  static constexpr int kLanes = Team < 32 ? Team : 32;
  static constexpr int kWarps = Team / kLanes;
  static constexpr int kElements = Team * Chunks * kWidth;

  State x[Chunks][kWidth];
  State before[Chunks];  // of the tile's elements before a group

  // Tiles of a reversed line end at `end`, its length in whole tiles.
  static __device__ __forceinline__ long long end_of(long long length) {
    return (length + kElements - 1) / kElements * kElements;
  }

  __device__ __forceinline__ void load(const Scan& scan, long long line, long long tile,
                                       long long length, long long end) {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const long long first = place(c, tile, end);
      scan.fetch(line, first, 0, length - first, x[c]);
    }
  }

  // Runs through the tile; the result is that of all its elements. `slots`: kWarps of this team,
  // not reused before the next __syncthreads().
  __device__ __forceinline__ State run(State* slots) {
    const int lane = threadIdx.x % kLanes, warp = threadIdx.x % Team / kLanes;
    State carry = Scan::identity();
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
#pragma unroll
      for (int v = 1; v < kWidth; ++v) {
        x[c][order(v)] = Op::apply(x[c][order(v - 1)], x[c][order(v)]);
      }
      State through = x[c][order(kWidth - 1)];
#pragma unroll
      for (int distance = 1; distance < kLanes; distance <<= 1) {
        const State other = __shfl_up_sync(0xffffffffu, through, distance, kLanes);
        if (lane >= distance) through = Op::apply(other, through);
      }
      const State ahead = __shfl_up_sync(0xffffffffu, through, 1, kLanes);
      before[c] = lane == 0 ? carry : Op::apply(carry, ahead);
      carry = Op::apply(carry, __shfl_sync(0xffffffffu, through, kLanes - 1, kLanes));
    }
    if constexpr (kWarps == 1) return carry;
    if (lane == 0) slots[warp] = carry;
    __syncthreads();
    State ahead = Scan::identity(), total = Scan::identity();
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp) ahead = total;
      total = Op::apply(total, slots[w]);
    }
#pragma unroll
    for (int c = 0; c < Chunks; ++c) before[c] = Op::apply(ahead, before[c]);
    return total;
  }

  // After run(): the running values, `carry` being that of the elements before the tile.
  __device__ __forceinline__ void finish(const Scan& scan, long long line, long long tile,
                                         long long length, long long end, State carry) const {
#pragma unroll
    for (int c = 0; c < Chunks; ++c) {
      const long long first = place(c, tile, end);
      const State base = Op::apply(carry, before[c]);
      State y[kWidth];
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        const int from = Scan::kExclusive ? v - 1 : v;
        y[order(v)] = from < 0 ? base : Op::apply(base, x[c][order(from < 0 ? 0 : from)]);
      }
      scan.finish(line, first, 0, length - first, y);
    }
  }

 private:
  static constexpr __device__ __forceinline__ int order(int v) {
    return Scan::kReverse ? kWidth - 1 - v : v;
  }
  static __device__ __forceinline__ long long place(int c, long long tile, long long end) {
    const int lane = threadIdx.x % kLanes, warp = threadIdx.x % Team / kLanes;
    const long long at = tile + ((warp * Chunks + c) * kLanes + lane) * kWidth;
    return Scan::kReverse ? end - kWidth - at : at;
  }
};

// Lines of any length: each is a team's, tile by tile. `slots`: 2 * Threads / 32 of shared memory
// where a team has several warps.
template <typename Scan, int Team, int Threads, int Chunks>
__device__ __forceinline__ void scan_lines(const Scan& scan, long long lines, long long length,
                                           typename Scan::State* slots) {
  using Tile = LineTile<Scan, Team, Chunks>;
  using State = typename Scan::State;
  const int team = threadIdx.x / Team;
  const long long own = blockIdx.x * static_cast<long long>(Threads / Team) + team;
  const long long line = min_of(own, lines - 1), extent = own < lines ? length : 0;
  const long long end = Tile::end_of(length);
  State carry = Scan::identity();
  Tile now;
  now.load(scan, line, 0, extent, end);
  int phase = 0;
#pragma unroll 1
  for (long long tile = 0; tile < end; tile += Tile::kElements, phase ^= 1) {
    Tile next;
    if (tile + Tile::kElements < end) {
      next.load(scan, line, tile + Tile::kElements, extent, end);
    }
    const State total = now.run(slots + phase * (Threads / 32) + team * Tile::kWarps);
    now.finish(scan, line, tile, extent, end, carry);
    carry = Scan::Op::apply(carry, total);
    now = next;
  }
}

// A tile of Across groups of lines in the registers of Across * Along threads; a thread has Depth
// positions of one group.
template <typename Scan, int Across, int Along, int Depth>
struct ColumnScanTile {
  using State = typename Scan::State;
  using Op = typename Scan::Op;
  static constexpr int kWidth = Scan::kWidth;
  static constexpr int kColumns = Across * kWidth;
  static constexpr int kElements = Along * Depth;  // of a line
  static constexpr int kSlots = Along * kColumns;

  State x[Depth][kWidth];
  State before[kWidth], total[kWidth];  // of the tile's elements before this thread's, and of all

  static __device__ __forceinline__ long long end_of(long long length) {
    return (length + kElements - 1) / kElements * kElements;
  }
  static __device__ __forceinline__ int across() { return threadIdx.x % Across; }
  static __device__ __forceinline__ int along() { return threadIdx.x / Across; }

  __device__ __forceinline__ void load(const Scan& scan, long long line, long long column,
                                       long long columns, long long tile, long long length,
                                       long long end) {
#pragma unroll
    for (int c = 0; c < Depth; ++c) {
      const long long at = place(c, tile, end);
      scan.fetch(line, min_of(at, length - 1), column, at < length ? columns - column : 0, x[c]);
    }
  }

  // `slots`: kSlots, not reused before the next __syncthreads().
  __device__ __forceinline__ void run(State* slots) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
#pragma unroll
      for (int c = 1; c < Depth; ++c) x[c][v] = Op::apply(x[c - 1][v], x[c][v]);
      slots[along() * kColumns + across() * kWidth + v] = x[Depth - 1][v];
      total[v] = Scan::identity();
      before[v] = Scan::identity();
    }
    __syncthreads();
#pragma unroll
    for (int other = 0; other < Along; ++other) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        if (other == along()) before[v] = total[v];
        total[v] = Op::apply(total[v], slots[other * kColumns + across() * kWidth + v]);
      }
    }
  }

  __device__ __forceinline__ void finish(const Scan& scan, long long line, long long column,
                                         long long columns, long long tile, long long length,
                                         long long end, const State (&carry)[kWidth]) const {
    State base[kWidth];
#pragma unroll
    for (int v = 0; v < kWidth; ++v) base[v] = Op::apply(carry[v], before[v]);
#pragma unroll
    for (int c = 0; c < Depth; ++c) {
      const long long at = place(c, tile, end);
      if (at >= length) continue;
      State y[kWidth];
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        const int from = Scan::kExclusive ? c - 1 : c;
        y[v] = from < 0 ? base[v] : Op::apply(base[v], x[from < 0 ? 0 : from][v]);
      }
      scan.finish(line, at, column, columns - column, y);
    }
  }

 private:
  static __device__ __forceinline__ long long place(int c, long long tile, long long end) {
    const long long at = tile + along() * Depth + c;
    return Scan::kReverse ? end - 1 - at : at;
  }
};

// A block has its lines from end to end. `slots`: 2 * kSlots.
template <typename Scan, int Across, int Along, int Depth>
__device__ __forceinline__ void scan_columns(const Scan& scan, long long columns, long long length,
                                             typename Scan::State* slots) {
  using Tile = ColumnScanTile<Scan, Across, Along, Depth>;
  using State = typename Scan::State;
  const long long groups = (columns + Tile::kColumns - 1) / Tile::kColumns;
  const long long line = floor_div(blockIdx.x, groups);
  const long long column =
      (blockIdx.x - line * groups) * Tile::kColumns + Tile::across() * Scan::kWidth;
  const long long end = Tile::end_of(length);
  State carry[Scan::kWidth];
#pragma unroll
  for (int v = 0; v < Scan::kWidth; ++v) carry[v] = Scan::identity();
  Tile now;
  now.load(scan, line, column, columns, 0, length, end);
  int phase = 0;
#pragma unroll 1
  for (long long tile = 0; tile < end; tile += Tile::kElements, phase ^= 1) {
    Tile next;
    if (tile + Tile::kElements < end) {
      next.load(scan, line, column, columns, tile + Tile::kElements, length, end);
    }
    now.run(slots + phase * Tile::kSlots);
    now.finish(scan, line, column, columns, tile, length, end, carry);
#pragma unroll
    for (int v = 0; v < Scan::kWidth; ++v) carry[v] = Scan::Op::apply(carry[v], now.total[v]);
    now = next;
  }
}
