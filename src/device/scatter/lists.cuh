// Scatters that combine updates. The updates of a slot get a list, which is brought into the order
// of their numbers, and folded one after the other, or, if it is long, in one part for each thread
// of a block: the bits are always the same.
//
// `slot(update)` is the slot that an update is meant for. Counts are 0 before; they have a place
// more than there are slots. Blocks have kScatterThreads threads.
#pragma once

constexpr int kScatterThreads = 256;
// Updates of a list that threads compare one by one, and fold one after the other.
constexpr unsigned kScatterLong = 1024;

__device__ __forceinline__ long long scatter_thread() {
  return blockIdx.x * 1ll * kScatterThreads + threadIdx.x;
}
__device__ __forceinline__ long long scatter_threads() { return gridDim.x * 1ll * kScatterThreads; }

template <typename Slot>
__device__ __forceinline__ void scatter_count(unsigned* counts, long long updates,
                                              const Slot& slot) {
  for (long long u = scatter_thread(); u < updates; u += scatter_threads()) {
    atomicAdd(counts + slot(u), 1u);
  }
}

// The sum of a warp's numbers up to this lane's.
__device__ __forceinline__ unsigned scatter_sum_of_lanes(unsigned number) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const unsigned before = __shfl_up_sync(0xffffffffu, number, step);
    if (lane >= step) number += before;
  }
  return number;
}

// Gives each slot as many adjacent places as it has updates. Those of a warp's slots follow each
// other; warps come in any order. All threads of a block call this.
__device__ __forceinline__ void scatter_reserve(unsigned* counts, unsigned* first, unsigned* end,
                                                long long slots) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for (long long base = scatter_thread() - lane; base < slots; base += scatter_threads()) {
    const long long slot = base + lane;
    const unsigned own = slot < slots ? counts[slot] : 0, sum = scatter_sum_of_lanes(own);
    unsigned start = lane == 31 ? atomicAdd(counts + slots, sum) : 0;
    start = __shfl_sync(0xffffffffu, start, 31) + sum - own;
    if (slot < slots) first[slot] = end[slot] = start;
  }
}

template <typename Slot>
__device__ __forceinline__ void scatter_place(unsigned* end, unsigned* list, long long updates,
                                              const Slot& slot) {
  for (long long u = scatter_thread(); u < updates; u += scatter_threads()) {
    list[atomicAdd(end + slot(u), 1u)] = static_cast<unsigned>(u);
  }
}

// Calls work(n) in all threads of a block, for those n below `count` with is_long(n): neighbours
// are in different blocks.
template <typename IsLong, typename Work>
__device__ __forceinline__ void scatter_for_long(long long count, const IsLong& is_long,
                                                 const Work& work) {
  __shared__ unsigned found[kScatterThreads / 32];
  const auto number = [&](long long start, long long thread) {
    return start + thread * gridDim.x + blockIdx.x;
  };
  for (long long start = 0; start < count; start += scatter_threads()) {
    const long long own = number(start, threadIdx.x);
    const unsigned flags = __ballot_sync(0xffffffffu, own < count && is_long(own));
    if ((threadIdx.x & 31) == 0) found[threadIdx.x >> 5] = flags;
    if (__syncthreads_or(flags != 0) == 0) continue;
#pragma unroll 1
    for (int thread = 0; thread < kScatterThreads; ++thread) {
      if ((found[thread >> 5] >> (thread & 31) & 1) != 0) work(number(start, thread));
    }
    __syncthreads();
  }
}

// Writes the updates of a slot in order, of all updates.
template <typename Slot>
__device__ __forceinline__ void scatter_collect(unsigned* ordered, long long of, long long updates,
                                                const Slot& slot) {
  __shared__ unsigned sums[kScatterThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) & 31, warp = static_cast<int>(threadIdx.x) >> 5;
  unsigned done = 0;
#pragma unroll 1
  for (long long base = 0; base < updates; base += kScatterThreads) {
    const long long u = base + threadIdx.x;
    const bool mine = u < updates && slot(u) == of;
    const unsigned flags = __ballot_sync(0xffffffffu, mine);
    if (lane == 0) sums[warp] = __popc(flags);
    __syncthreads();
    unsigned before = done;
#pragma unroll
    for (int i = 0; i < kScatterThreads / 32; ++i) {
      before += i < warp ? sums[i] : 0;
      done += sums[i];
    }
    if (mine) ordered[before + __popc(flags & ((1u << lane) - 1))] = static_cast<unsigned>(u);
    __syncthreads();
  }
}

// The same lists in the order of the updates' numbers. All threads of a block call this.
template <typename Slot>
__device__ __forceinline__ void scatter_order(const unsigned* first, const unsigned* end,
                                              const unsigned* list, unsigned* ordered,
                                              long long updates, long long slots,
                                              const Slot& slot) {
  for (long long i = scatter_thread(); i < updates; i += scatter_threads()) {
    const unsigned update = list[i];
    const long long of = slot(update);
    const unsigned begin = first[of], stop = end[of];
    if (stop - begin > kScatterLong) continue;
    unsigned before = 0;
    for (unsigned j = begin; j < stop; ++j) before += list[j] < update ? 1 : 0;
    ordered[begin + before] = update;
  }
  scatter_for_long(
      slots, [&](long long of) { return end[of] - first[of] > kScatterLong; },
      [&](long long of) { scatter_collect(ordered + first[of], of, updates, slot); });
}

// fold(sum, update, column), join(sum, sum) and store(sum, slot, column), for every column of every
// slot. All threads of a block call this.
template <typename T, typename Fold, typename Join, typename Store>
__device__ __forceinline__ void scatter_fold(const unsigned* first, const unsigned* end,
                                             const unsigned* list, long long slots,
                                             long long columns, T identity, const Fold& fold,
                                             const Join& join, const Store& store) {
  __shared__ T parts[kScatterThreads];
  for (long long e = scatter_thread(); e < slots * columns; e += scatter_threads()) {
    const long long slot = e / columns, column = e - slot * columns;
    const unsigned begin = first[slot], stop = end[slot];
    if (stop - begin > kScatterLong) continue;
    T sum = identity;
#pragma unroll 4
    for (unsigned j = begin; j < stop; ++j) sum = fold(sum, list[j], column);
    store(sum, slot, column);
  }
  scatter_for_long(
      slots * columns,
      [&](long long e) { return end[e / columns] - first[e / columns] > kScatterLong; },
      [&](long long e) {
        const long long slot = e / columns, column = e - slot * columns;
        T sum = identity;
#pragma unroll 4
        for (unsigned j = first[slot] + threadIdx.x; j < end[slot]; j += kScatterThreads) {
          sum = fold(sum, list[j], column);
        }
        parts[threadIdx.x] = sum;
        __syncthreads();
        for (int half = kScatterThreads / 2; half > 0; half /= 2) {
          if (threadIdx.x < half) {
            parts[threadIdx.x] = join(parts[threadIdx.x], parts[threadIdx.x + half]);
          }
          __syncthreads();
        }
        if (threadIdx.x == 0) store(parts[0], slot, column);
        __syncthreads();
      });
}
