// The first elements of a row of any length, by a block that reads it once.
//
// The block keeps a list of candidates in shared memory and a bound: an element that is not before
// it is no result. Tile by tile, what is before the bound joins the list. Where the best elements
// of so many threads are before it that K results are among them, the K-th best of these becomes
// the bound first, so that of a tile at most K · Elements join, whatever the data. A list that may
// overflow is sorted and cut to K. The order of joining differs from run to run; as no two entries
// are equal, the result does not.
#pragma once

// `size`, a power of two, entries in their order, by all threads of the block, which have met
// before and meet behind it (bitonic sort; Batcher, 1968).
template <int Threads, typename Entry>
__device__ __forceinline__ void sort_entries(Entry* list, int size) {
  for (int run = 2; run <= size; run <<= 1) {
    for (int stride = run >> 1; stride > 0; stride >>= 1) {
      for (int i = threadIdx.x; i < size / 2; i += Threads) {
        const int low = 2 * i - (i & (stride - 1)), high = low + stride;
        const Entry a = list[low], b = list[high];
        if (b.before(a) == ((low & run) == 0)) {
          list[low] = b;
          list[high] = a;
        }
      }
      // Pairs up to 32 apart lie among the 64 entries of one warp.
      const int next = stride > 1 ? stride >> 1 : run;
      if ((stride > 32 || next > 32) && Threads > 32) {
        __syncthreads();
      } else {
        __syncwarp();
      }
    }
  }
  __syncthreads();
}

// The first K of a row, by a block of Threads; a tile has Elements of each thread.
template <typename Key, int K, int Threads, int Elements, int Capacity>
struct BlockRanking {
  using Entry = RankEntry<Key>;
  // Of fewer threads the K-th best is too far behind.
  static constexpr bool kRaises = 2 * K <= Threads;
  static constexpr int kTile = Threads * Elements;
  static_assert((Capacity & (Capacity - 1)) == 0, "lists are sorted as powers of two");

  struct Shared {
    Entry list[Capacity];
    Entry best[kRaises ? Threads : 1];
    unsigned count;
  };

  Shared& shared;
  Entry bound;
  int most;  // an upper limit of the entries in the list, the same for all threads

  __device__ __forceinline__ explicit BlockRanking(Shared& memory) : shared(memory) {}

  // All tiles of `extent` elements, the first of which is `shift` places behind the start of the
  // first tile. load(tile) fetches this thread's elements; then fold(tile) is for other reductions
  // of the row, and rank(tile, keys, there) makes the keys: 0 where there is no element, else the
  // element's bit of `there` is set. Element i of this thread is at position(tile, i) of the row,
  // which grows with i.
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
      load(tile + kTile);  // on its way while the block meets
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

  // The same of `total` entries in memory.
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

  // The results are list[0], ..., list[K - 1], those that do not exist none().
  __device__ __forceinline__ void finish() {
    __syncthreads();
    sort(static_cast<int>(shared.count));
  }

 private:
  __device__ __forceinline__ void open() {
    __syncthreads();
    if (threadIdx.x == 0) shared.count = 0;
    bound = Entry::none();
    most = 0;
  }

  // The list of `count` entries sorted, with none() behind them, at least K in all.
  __device__ __forceinline__ void sort(int count) {
    int size = 1;
    while (size < max(count, K)) size <<= 1;
    for (int i = count + static_cast<int>(threadIdx.x); i < size; i += Threads) {
      shared.list[i] = Entry::none();
    }
    __syncthreads();
    sort_entries<Threads>(shared.list, size);
  }

  // What of a tile is before the bound joins the list: `best` is this thread's best, and `left`
  // elements of the row remain.
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
    if (!best.before(bound)) return;
#pragma unroll
    for (int i = 0; i < Elements; ++i) {
      if (keys[i] < bound.key() || (there >> i & 1u) == 0) continue;
      const Entry entry = Entry::of(keys[i], place(i));
      if (entry.before(bound)) join(entry);
    }
  }

  // Lanes that are here together take their places by one addition.
  __device__ __forceinline__ void join(const Entry& entry) {
    const unsigned lanes = __activemask(), lane = threadIdx.x & 31;
    unsigned place = 0;
    const int leader = __ffs(lanes) - 1;
    if (static_cast<int>(lane) == leader) place = atomicAdd(&shared.count, __popc(lanes));
    place = __shfl_sync(lanes, place, leader) + __popc(lanes & ((1u << lane) - 1));
    shared.list[place] = entry;
  }

  __device__ __forceinline__ void raise(const Entry& best) {
    shared.best[threadIdx.x] = best;
    __syncthreads();
    sort_entries<Threads>(shared.best, Threads);
    bound = shared.best[K - 1].behind();
  }

  // Room for `added` entries. Nobody has joined the list since the block met.
  __device__ __forceinline__ void cut(int added) {
    const int count = static_cast<int>(shared.count);
    __syncthreads();
    most = count;
    if (count + added <= Capacity) return;
    sort(count);
    most = min(count, K);
    if (count >= K) {
      const Entry last = shared.list[K - 1];
      if (last.before(bound)) bound = last;
    }
    if (threadIdx.x == 0) shared.count = most;
    __syncthreads();
  }
};
