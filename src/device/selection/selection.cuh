// Places of which a flag is set, in order, and how many there are.
//
//   selection_flags    stores the flags as bits, and how many of a block's share are set
//   selection_places   adds up the numbers of the blocks before, and stores the places
//
// Both have the same grid, whose blocks have equal shares of the places, and kSelectionThreads
// threads a block.
#pragma once

#include "device/reduce.cuh"

constexpr int kSelectionThreads = 256;
constexpr int kSelectionTile = 8 * kSelectionThreads;  // places; a byte of flags for each thread

__device__ __forceinline__ long long selection_share(long long places) {
  const long long tiles = (places + kSelectionTile - 1) / kSelectionTile;
  return (tiles + gridDim.x - 1) / gridDim.x * kSelectionTile;
}

// flag(place) of `places`; a word of 32 bits and more may be written behind them, up to the tile's
// end.
template <typename Flag>
__device__ __forceinline__ void selection_flags(unsigned* words, unsigned* counts, long long places,
                                                const Flag& flag) {
  __shared__ unsigned sums[kSelectionThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const long long share = selection_share(places), first = blockIdx.x * share;
  const long long end = min_of(first + share, places);
  unsigned count = 0;
#pragma unroll 4
  for (long long base = first + warp * 32; base < end; base += kSelectionThreads) {
    const bool set = base + lane < end && flag(base + lane);
    const unsigned word = __ballot_sync(0xffffffffu, set);
    if (lane == 0) words[base / 32] = word;
    count += __popc(word);
  }
  if (lane == 0) sums[warp] = count;
  __syncthreads();
  if (threadIdx.x != 0) return;
  count = 0;
  for (int i = 0; i < kSelectionThreads / 32; ++i) count += sums[i];
  counts[blockIdx.x] = count;
}

// Writes how many places there are to *found, and calls store(place, number, found) for each, where
// `number` is that of the places before.
template <typename Store>
__device__ __forceinline__ void selection_places(const unsigned* words, const unsigned* counts,
                                                 long long* found, long long places,
                                                 const Store& store) {
  constexpr int kWarps = kSelectionThreads / 32;
  __shared__ unsigned short list[kSelectionTile];  // places of the tile
  __shared__ __align__(16) char slots[2 * kWarps * kSlotBytes];
  __shared__ unsigned sums[kWarps];
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  const long long share = selection_share(places), first = blockIdx.x * share;
  const long long end = min_of(first + share, places);
  long long before = 0, all = 0;
  for (unsigned block = threadIdx.x; block < gridDim.x; block += kSelectionThreads) {
    all += counts[block];
    before += block < blockIdx.x ? counts[block] : 0;
  }
  before = block_reduce<kWarps, SumOp>(before, slots);
  all = block_reduce<kWarps, SumOp>(all, slots + kWarps * kSlotBytes);
  if (blockIdx.x == 0 && threadIdx.x == 0) *found = all;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(words);
#pragma unroll 1
  for (long long tile = first; tile < end; tile += kSelectionTile) {
    const long long own = tile / 8 + threadIdx.x;
    const unsigned flags = 8 * own < end ? bytes[own] : 0;
    unsigned through = __popc(flags);
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const unsigned other = __shfl_up_sync(0xffffffffu, through, step);
      if (lane >= step) through += other;
    }
    if (lane == 31) sums[warp] = through;
    __syncthreads();
    unsigned at = through - __popc(flags), count = 0;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) {
      at += i < warp ? sums[i] : 0;
      count += sums[i];
    }
#pragma unroll
    for (int bit = 0; bit < 8; ++bit) {
      if ((flags >> bit & 1) == 0) continue;
      list[at++] = static_cast<unsigned short>(8 * threadIdx.x + bit);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += kSelectionThreads) {
      store(tile + list[i], before + i, all);
    }
    before += count;
    __syncthreads();
  }
}

// Calls store(line, place, column, number) for every column of the selected places of every line,
// which follow each other.
template <typename Store>
__device__ __forceinline__ void selection_gather(const long long* list, const long long* found,
                                                 long long lines, long long columns,
                                                 const Store& store) {
  const long long row = *found * columns, all = lines * row;
  for (long long i = blockIdx.x * 1ll * kSelectionThreads + threadIdx.x; i < all;
       i += gridDim.x * 1ll * kSelectionThreads) {
    const long long line = i / row, rest = i - line * row, number = rest / columns;
    store(line, list[number], rest - number * columns, i);
  }
}
