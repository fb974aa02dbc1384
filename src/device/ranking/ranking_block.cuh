// The first elements of a row of any length, by a block that reads it once.
//
// The block has a list of candidates in shared memory, and a bound: only elements before the bound
// can be results. Tile by tile, elements before the bound are appended to the list. If at least K
// threads have their best element before the bound, the K-th best of these becomes the bound first,
// so a tile appends at most K · Elements, whatever the data. A list that may overflow is sorted and
// cut to K. The order of appending differs between runs; the result does not, because no two
// entries are equal.
#pragma once

#include "device/ranking/ranking.cuh"
#include "device/ranking/ranking_sort.cuh"

// The first K of a row, by a block of Threads; a tile has Elements of each thread.
template <typename Key_, int K, int Threads, int Elements, int Capacity>
struct BlockRanking {
  using Key = Key_;
  using Entry = RankEntry<Key>;
  // With fewer threads the K-th best is too weak a bound.
  static constexpr bool kRaises = 2 * K <= Threads;
  static constexpr int kTile = Threads * Elements;
  static constexpr int kCount = K;
  // Up to so many entries are sorted by counting.
  static constexpr int kCounted = 2 * Threads;
  static_assert((Capacity & (Capacity - 1)) == 0, "lists are sorted as powers of two");

  struct Shared {
    Entry list[Capacity];
    Entry best[kRaises ? Threads : 1];
    Entry chosen;
    int count, sums[3];
  };

  Shared& shared;
  Entry bound;
  int most;  // an upper limit of the entries in the list, the same for all threads

  __device__ __forceinline__ explicit BlockRanking(Shared& memory) : shared(memory) {}

  // Processes all tiles of `extent` elements; the first element is at place `shift` of the first
  // tile. load(tile) loads this thread's elements, fold(tile) computes other reductions of the row,
  // and rank(tile, keys, there) sets the keys, 0 for missing elements, and the bits of existing
  // elements in `there`. Element i of this thread is at position(tile, i) of the row, which
  // increases with i.
  template <typename Load, typename Fold, typename Rank, typename Position>
  __device__ __forceinline__ void run(int extent, int shift, Load load, Fold fold, Rank rank,
                                      Position position) {
    open();
    load(0);
#pragma unroll 1
    for (int tile = 0; tile < extent + shift; tile += kTile) {
      Key keys[Elements];
      unsigned there = 0;
      fold(tile);
      rank(tile, keys, there);
      load(tile + kTile);  // in flight during the barrier
      Key key = keys[0];
      int slot = 0;
#pragma unroll
      for (int i = 1; i < Elements; ++i) {
        if (keys[i] > key) {
          key = keys[i];
          slot = i;
        }
      }
      if (key == Key(0)) slot = __ffs(there) - 1;
      const auto place = [&](int i) { return position(tile, i); };
      const Entry best = slot < 0 ? Entry::none() : Entry::of(key, place(slot));
      add(best, min(extent, extent + shift - tile), keys, there, place);
    }
  }

  // The same for `total` entries in memory.
  __device__ __forceinline__ void merge(const Entry* from, int total) {
    open();
#pragma unroll 1
    for (int tile = 0; tile < total; tile += kTile) {
      Key keys[Elements];
      unsigned places[Elements], there = 0;
      Entry best = Entry::none();
#pragma unroll
      for (int i = 0; i < Elements; ++i) {
        const int at = tile + i * Threads + static_cast<int>(threadIdx.x);
        const Entry entry = at < total ? from[at] : Entry::none();
        keys[i] = entry.key();
        places[i] = entry.position();
        there |= (places[i] != kNowhere) << i;
        if (entry.before(best)) best = entry;
      }
      add(best, total - tile, keys, there, [&](int i) { return places[i]; });
    }
  }

  // The results are list[0], ..., list[K - 1]; missing ones are none().
  __device__ __forceinline__ void finish() {
    __syncthreads();
    int count = shared.count;
    int size = 16;
    while (size < K) size <<= 1;
    if (count > kCounted && count > size) {
      __syncthreads();
      keep(count);
      count = K;
    }
    if (count <= kCounted) return place_entries<K, 2, Threads>(shared.list, count);
    for (int i = count + static_cast<int>(threadIdx.x); i < size; i += Threads) {
      shared.list[i] = Entry::none();
    }
    __syncthreads();
    sort_entries<Threads>(shared.list, size);
  }

 private:
  __device__ __forceinline__ void open() {
    __syncthreads();
    if (threadIdx.x == 0) shared.count = 0;
    bound = Entry::none();
    most = 0;
  }

  // Appends the elements of a tile that are before the bound. `best` is this thread's best element;
  // `left` elements of the row remain.
  template <typename Place>
  __device__ __forceinline__ void add(const Entry& best, int left, const Key (&keys)[Elements],
                                      unsigned there, Place place) {
    const int passing = __syncthreads_count(best.before(bound));
    if (passing == 0) return;
    const int threads = kRaises ? min(passing, K) : passing;
    const int added = min(threads * Elements, left);
    if (most + added > Capacity) cut(added);
    most += added;
    if (kRaises && passing >= K) raise(best);
    unsigned joining = 0;
    if (best.before(bound)) {
#pragma unroll
      for (int i = 0; i < Elements; ++i) {
        if (keys[i] < bound.key() || (there >> i & 1u) == 0) continue;
        joining |= Entry::of(keys[i], place(i)).before(bound) << i;
      }
    }
    int to = places_for(__popc(joining));
#pragma unroll
    for (int i = 0; i < Elements; ++i) {
      if (joining >> i & 1u) shared.list[to++] = Entry::of(keys[i], place(i));
    }
  }

  // Reserves consecutive places for this thread's `own` entries, by one atomic addition per warp.
  __device__ __forceinline__ int places_for(int own) {
    const int lane = threadIdx.x & 31;
    int through = own;
#pragma unroll
    for (int distance = 1; distance < 32; distance <<= 1) {
      const int before = __shfl_up_sync(0xffffffffu, through, distance);
      if (lane >= distance) through += before;
    }
    int first = 0;
    if (lane == 31 && through > 0) first = atomicAdd(&shared.count, through);
    return __shfl_sync(0xffffffffu, first, 31) + through - own;
  }

  // At least K threads have their best element before the bound.
  __device__ __forceinline__ void raise(const Entry& best) {
    shared.best[threadIdx.x] = best;
    __syncthreads();
    if (best.before(bound) && entries_before(shared.best, Threads, best) == K - 1) {
      shared.chosen = best.behind();
    }
    __syncthreads();
    bound = shared.chosen;
  }

  // Makes space for `added` entries. The list is unchanged since the last barrier of the block.
  __device__ __forceinline__ void cut(int added) {
    const int count = shared.count;
    __syncthreads();
    most = count;
    if (count + added <= Capacity || count <= K) return;
    keep(count);
    most = K;
  }

  // Keeps the first K of `count` > K entries, in any order, and raises the bound.
  __device__ __forceinline__ void keep(int count) {
    if (threadIdx.x == 0) shared.sums[0] = shared.count = 0;
    __syncthreads();
    const Entry last = last_entry<K, Threads>(shared.list, count, shared.sums);
    for (int first = 0; first < count; first += Threads) {
      const int i = first + static_cast<int>(threadIdx.x);
      Entry own = Entry::none();
      if (i < count) own = shared.list[i];
      const bool kept = i < count && !last.before(own);
      // From here on writes only overwrite entries that all threads have read.
      __syncthreads();
      const int to = places_for(kept ? 1 : 0);
      if (kept) shared.list[to] = own;
    }
    if (last.before(bound)) bound = last;
    __syncthreads();
  }
};
