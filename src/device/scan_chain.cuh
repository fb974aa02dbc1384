// Running reductions of lines that several blocks share, in one pass over memory.
//
// A block takes one tile. It publishes the tile's reduction and combines those of all tiles before
// it (after Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back",
// 2016). Unlike there, what is combined does not depend on how far other blocks have come, so that
// floats have the same bits in every run: the tiles before it in its group of kGroup, and the
// running value that the last tile of the group before has published. Blocks number themselves as
// they start, so that those which are waited for have started.
#pragma once

#include "device/math.cuh"
#include "device/reduce.cuh"
#include "device/scan.cuh"
#include "device/types.cuh"

// Words that blocks exchange: half of a word is a part of a value, the other half says that it is
// there, so that no access waits for another. `words`, all 0 at the start: the number of blocks
// that have started, then Values states per tile and per group of tiles. Tiles are numbered line by
// line.
template <typename State, int Values>
struct ScanChain {
  static constexpr int kParts = static_cast<int>(sizeof(State)) / 4;
  union Bits {
    State value;
    unsigned parts[kParts];
    __device__ __forceinline__ Bits() {}
  };
  unsigned long long* words;

  // Called by all threads, once; `number` is a place in shared memory.
  __device__ __forceinline__ long long start(unsigned* number) const {
    if (threadIdx.x == 0) *number = atomicAdd(reinterpret_cast<unsigned*>(words), 1u);
    __syncthreads();
    return *number;
  }
  __device__ __forceinline__ volatile unsigned long long* place(long long entry, int v) const {
    return words + 1 + (entry * Values + v) * kParts;
  }
  __device__ __forceinline__ void put(long long entry, int v, State value) const {
    Bits bits;
    bits.value = value;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      place(entry, v)[part] = 1ull << 32 | bits.parts[part];
    }
  }
  __device__ __forceinline__ State get(long long entry, int v) const {
    Bits bits;
#pragma unroll
    for (int part = 0; part < kParts; ++part) {
      unsigned long long word = 0;
      while (word == 0) word = place(entry, v)[part];
      bits.parts[part] = static_cast<unsigned>(word);
    }
    return bits.value;
  }
};

// `slots`: Threads / 32 states, and kSlotBytes for each warp behind them.
template <typename Scan, int Threads, int Chunks>
__device__ __forceinline__ void scan_lines_shared(const Scan& scan, long long lines,
                                                  long long length, unsigned long long* words,
                                                  typename Scan::State* slots, char* parts,
                                                  unsigned* number) {
  using Tile = LineTile<Scan, Threads, Chunks>;
  using State = typename Scan::State;
  using Op = typename Scan::Op;
  constexpr int kGroup = 2 * Threads;
  const long long end = Tile::end_of(length), tiles = end / Tile::kElements;
  const long long groups = (tiles + kGroup - 1) / kGroup;
  const ScanChain<State, 1> chain{words};
  const long long all = lines * tiles;
  const long long entry = chain.start(number);
  const long long line = floor_div(entry, tiles), index = entry - line * tiles;
  const int place = static_cast<int>(index % kGroup);
  const long long group = index / kGroup, last = all + line * groups + group - 1;
  Tile tile;
  tile.load(scan, line, index * Tile::kElements, length, end);
  const State total = tile.run(slots);
  if (threadIdx.x == 0) chain.put(entry, 0, total);
  State carry = Scan::identity();
  for (int other = threadIdx.x; other < place; other += Threads) {
    carry = Op::apply(carry, chain.get(entry - place + other, 0));
  }
  carry = block_reduce<Threads / 32, Op>(carry, parts);
  if (group > 0) carry = Op::apply(chain.get(last, 0), carry);
  if (place == kGroup - 1 && threadIdx.x == 0) chain.put(last + 1, 0, Op::apply(carry, total));
  tile.finish(scan, line, index * Tile::kElements, length, end, carry);
}

// `slots`: 2 * kSlots of the tile.
template <typename Scan, int Across, int Along, int Depth>
__device__ __forceinline__ void scan_columns_shared(const Scan& scan, long long lines,
                                                    long long columns, long long length,
                                                    unsigned long long* words,
                                                    typename Scan::State* slots, unsigned* number) {
  using Tile = ColumnScanTile<Scan, Across, Along, Depth>;
  using State = typename Scan::State;
  using Op = typename Scan::Op;
  constexpr int kGroup = 8 * Along, kWidth = Scan::kWidth;
  const long long end = Tile::end_of(length), tiles = end / Tile::kElements;
  const long long groups = (tiles + kGroup - 1) / kGroup;
  const long long strips = (columns + Tile::kColumns - 1) / Tile::kColumns;
  const ScanChain<State, Tile::kColumns> chain{words};
  const long long all = lines * strips * tiles;
  const long long entry = chain.start(number);
  const long long strip = floor_div(entry, tiles), index = entry - strip * tiles;
  const long long line = floor_div(strip, strips);
  const int across = Tile::across() * kWidth;
  const long long column = (strip - line * strips) * Tile::kColumns + across;
  const int place = static_cast<int>(index % kGroup);
  const long long group = index / kGroup, last = all + strip * groups + group - 1;
  Tile tile;
  tile.load(scan, line, column, columns, index * Tile::kElements, length, end);
  tile.run(slots);
  State carry[kWidth];
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    if (Tile::along() == 0) chain.put(entry, across + v, tile.total[v]);
    carry[v] = Scan::identity();
  }
  for (int other = Tile::along(); other < place; other += Along) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      carry[v] = Op::apply(carry[v], chain.get(entry - place + other, across + v));
    }
  }
  State* parts = slots + Tile::kSlots;
#pragma unroll
  for (int v = 0; v < kWidth; ++v) parts[Tile::along() * Tile::kColumns + across + v] = carry[v];
  __syncthreads();
#pragma unroll
  for (int v = 0; v < kWidth; ++v) {
    carry[v] = group > 0 ? chain.get(last, across + v) : Scan::identity();
#pragma unroll
    for (int other = 0; other < Along; ++other) {
      carry[v] = Op::apply(carry[v], parts[other * Tile::kColumns + across + v]);
    }
  }
  if (place == kGroup - 1 && Tile::along() == 0) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      chain.put(last + 1, across + v, Op::apply(carry[v], tile.total[v]));
    }
  }
  tile.finish(scan, line, column, columns, index * Tile::kElements, length, end, carry);
}
