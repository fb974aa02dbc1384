// Whole rows sorted by several blocks: radix sort from the lowest digit up, stable in every pass,
// so that equal elements keep their order (after Adinets and Merrill, "Onesweep: A Faster Least
// Significant Digit Radix Sort for GPUs", 2022).
//
// `Sort` is a generated functor: Key, and key(row, at), which is greater for an element that ranks
// earlier. Passes sort its complement, upwards.
//
//   radix_count     for every row and pass, how many elements have each digit
//   radix_scatter   a pass: each tile of a row finds where its elements go by the number of their
//                   digit in the tiles before it, which publish theirs
#pragma once

#include "device/math.cuh"
#include "device/ranking/ranking.cuh"

constexpr int kDigits = 256;

template <typename Key>
__device__ __forceinline__ unsigned digit_of(Key key, int bit) {
  return static_cast<unsigned>(key >> bit) & (kDigits - 1);
}

// Digits from the bit First on, of the elements of blockIdx.x's tile. `digits`: kDigits numbers for
// every row and pass, 0 at the start.
template <typename Sort, int First, int Threads, int Elements>
__device__ __forceinline__ void radix_count(const Sort& sort, long long length, unsigned* digits) {
  using Key = typename Sort::Key;
  constexpr int kPasses = (8 * static_cast<int>(sizeof(Key)) - First) / 8;
  constexpr int kTile = Threads * Elements;
  __shared__ unsigned counts[kPasses][kDigits];
  for (int i = threadIdx.x; i < kPasses * kDigits; i += Threads) (&counts[0][0])[i] = 0;
  __syncthreads();
  const long long tiles = (length + kTile - 1) / kTile, row = floor_div(blockIdx.x, tiles);
  const long long first = (blockIdx.x - row * tiles) * kTile;
#pragma unroll 4
  for (int e = 0; e < Elements; ++e) {
    const long long at = first + e * Threads + threadIdx.x;
    if (at >= length) break;
    const Key key = ~sort.key(row, static_cast<unsigned>(at));
#pragma unroll
    for (int pass = 0; pass < kPasses; ++pass) {
      atomicAdd(&counts[pass][digit_of(key, First + 8 * pass)], 1u);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < kPasses * kDigits; i += Threads) {
    const unsigned count = (&counts[0][0])[i];
    if (count > 0) atomicAdd(digits + row * kPasses * kDigits + i, count);
  }
}

// What a pass reads and writes; elements of a row are `length` apart from those of the next.
template <typename Key>
struct RadixPass {
  const Key* from;                 // complements of keys; of the first pass the functor's
  const unsigned* from_positions;  // in the row; of the first pass the order in memory
  Key* to;                         // null for the last pass
  unsigned* to_positions;
  // 0 at the start but for `digits`: the number of blocks that have started, and for every tile and
  // digit the number of elements in this tile, then in all tiles up to it.
  unsigned* started;
  unsigned* tiles;
  const unsigned* digits;  // of the first row's pass; the next row's are `stride` behind
  int stride;
};

// Threads is kDigits: a thread has a digit, and Elements elements.
template <typename Sort, int Elements>
struct RadixTile {
  using Key = typename Sort::Key;
  static constexpr int kThreads = kDigits, kWarps = kThreads / 32, kTile = kThreads * Elements;
  static constexpr unsigned kOwn = 1u << 30, kAll = 2u << 30, kNumber = kOwn - 1;

  struct Shared {
    Key keys[kTile];
    unsigned positions[kTile];
    unsigned counts[kWarps][kDigits];  // in the warps before
    unsigned starts[kDigits];          // of a digit in the tile
    unsigned offsets[kDigits];         // from a place in the tile to one in the row
    unsigned slots[kWarps], started;
  };

  // The sum of the values of the threads before this one. Called by all threads.
  static __device__ __forceinline__ unsigned sum_before(unsigned value, unsigned* slots) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    unsigned through = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance <<= 1) {
      const unsigned other = __shfl_up_sync(0xffffffffu, through, distance);
      if (lane >= distance) through += other;
    }
    __syncthreads();
    if (lane == 31) slots[warp] = through;
    __syncthreads();
    for (int w = 0; w < warp; ++w) through += slots[w];
    return through - value;
  }

  // How many elements of this thread's digit the row's tiles before this one have; `own` of this.
  static __device__ __forceinline__ unsigned look_back(unsigned* tiles, long long tile,
                                                       unsigned own) {
    volatile unsigned* entry = tiles + tile * kDigits + threadIdx.x;
    if (tile == 0) {
      *entry = kAll | own;
      return 0;
    }
    *entry = kOwn | own;
    unsigned before = 0, found = 0;
    for (volatile unsigned* other = entry - kDigits; (found & kAll) == 0; other -= kDigits) {
      do {
        found = *other;
      } while (found == 0);
      before += found & kNumber;
    }
    *entry = kAll | (before + own);
    return before;
  }
};

// Lanes whose digits are equal.
__device__ __forceinline__ unsigned lanes_with(unsigned digit) {
  unsigned lanes = 0xffffffffu;
#pragma unroll
  for (int bit = 0; bit < 8; ++bit) {
    const bool set = (digit >> bit & 1u) != 0;
    const unsigned others = __ballot_sync(0xffffffffu, set);
    lanes &= set ? others : ~others;
  }
  return lanes;
}

template <typename Sort, int Bit, bool First, bool Last, int Elements>
__device__ __forceinline__ void radix_scatter(const Sort& sort, long long length,
                                              const RadixPass<typename Sort::Key>& pass) {
  using Tile = RadixTile<Sort, Elements>;
  using Key = typename Sort::Key;
  __shared__ typename Tile::Shared shared;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (threadIdx.x == 0) shared.started = atomicAdd(pass.started, 1u);
  for (int w = 0; w < Tile::kWarps; ++w) shared.counts[w][threadIdx.x] = 0;
  __syncthreads();
  const long long tiles = (length + Tile::kTile - 1) / Tile::kTile;
  const long long number = shared.started, row = floor_div(number, tiles);
  const long long tile = number - row * tiles, base = row * length, first = tile * Tile::kTile;
  const auto in_row = [&](int e) { return first + (warp * Elements + e) * 32 + lane; };
  Key keys[Elements];
  // Of the first pass, in_row() is the position; ptxas spills an array of it.
  unsigned positions[Elements], ranks[Elements];
#pragma unroll
  for (int e = 0; e < Elements; ++e) {
    const long long at = in_row(e);
    // A place behind the row's end ranks behind all elements, and is not written.
    keys[e] = ~Key(0);
    positions[e] = 0;
    if (at < length) {
      keys[e] = First ? ~sort.key(row, static_cast<unsigned>(at)) : pass.from[base + at];
      if (!First) positions[e] = pass.from_positions[base + at];
    }
  }
#pragma unroll
  for (int e = 0; e < Elements; ++e) {
    const unsigned digit = digit_of(keys[e], Bit), same = lanes_with(digit);
    const int leader = __ffs(static_cast<int>(same)) - 1;
    unsigned before = 0;
    if (lane == leader) {
      before = shared.counts[warp][digit];
      shared.counts[warp][digit] = before + __popc(same);
    }
    ranks[e] = __shfl_sync(0xffffffffu, before, leader) + __popc(same & ((1u << lane) - 1));
    __syncwarp();
  }
  __syncthreads();
  unsigned own = 0;
  for (int w = 0; w < Tile::kWarps; ++w) {
    const unsigned count = shared.counts[w][threadIdx.x];
    shared.counts[w][threadIdx.x] = own;
    own += count;
  }
  const unsigned before = Tile::look_back(pass.tiles + row * tiles * kDigits, tile, own);
  const unsigned start = Tile::sum_before(own, shared.slots);
  const unsigned smaller =
      Tile::sum_before(pass.digits[row * pass.stride + threadIdx.x], shared.slots);
  shared.starts[threadIdx.x] = start;
  shared.offsets[threadIdx.x] = smaller + before - start;
  __syncthreads();
#pragma unroll
  for (int e = 0; e < Elements; ++e) {
    const unsigned digit = digit_of(keys[e], Bit);
    const unsigned place = shared.starts[digit] + shared.counts[warp][digit] + ranks[e];
    shared.keys[place] = keys[e];
    shared.positions[place] = First ? static_cast<unsigned>(in_row(e)) : positions[e];
  }
  __syncthreads();
#pragma unroll
  for (int e = 0; e < Elements; ++e) {
    const int place = e * Tile::kThreads + static_cast<int>(threadIdx.x);
    const Key key = shared.keys[place];
    const unsigned to = shared.offsets[digit_of(key, Bit)] + place;
    if (to >= length) continue;
    if (!Last) pass.to[base + to] = key;
    pass.to_positions[base + to] = shared.positions[place];
  }
}
