// Scatters that combine updates. The updates of a slot get a list, which is brought into the order
// of their numbers, and folded one after the other: the bits are always the same.
//
// `slot(update)` is the slot that an update is meant for. Counts are 0 before; they have a place
// more than there are slots.
#pragma once

__device__ __forceinline__ long long scatter_thread() {
  return blockIdx.x * 1ll * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ long long scatter_threads() { return gridDim.x * 1ll * blockDim.x; }

template <typename Slot>
__device__ __forceinline__ void scatter_count(unsigned* counts, long long updates,
                                              const Slot& slot) {
  for (long long u = scatter_thread(); u < updates; u += scatter_threads()) {
    atomicAdd(counts + slot(u), 1u);
  }
}

// Gives each slot as many adjacent places as it has updates. Those of a warp's slots follow each
// other; warps come in any order. All threads of a block call this.
__device__ __forceinline__ void scatter_reserve(unsigned* counts, unsigned* first, unsigned* end,
                                                long long slots) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  for (long long base = scatter_thread() - lane; base < slots; base += scatter_threads()) {
    const long long slot = base + lane;
    const unsigned own = slot < slots ? counts[slot] : 0;
    unsigned sum = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const unsigned before = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += before;
    }
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

// The same lists in the order of the updates' numbers.
template <typename Slot>
__device__ __forceinline__ void scatter_order(const unsigned* first, const unsigned* end,
                                              const unsigned* list, unsigned* ordered,
                                              long long updates, const Slot& slot) {
  for (long long i = scatter_thread(); i < updates; i += scatter_threads()) {
    const unsigned update = list[i];
    const long long of = slot(update);
    const unsigned begin = first[of], stop = end[of];
    unsigned before = 0;
    for (unsigned j = begin; j < stop; ++j) before += list[j] < update ? 1 : 0;
    ordered[begin + before] = update;
  }
}

// fold(sum, update, column) and store(sum, slot, column), for every column of every slot.
template <typename T, typename Fold, typename Store>
__device__ __forceinline__ void scatter_fold(const unsigned* first, const unsigned* end,
                                             const unsigned* list, long long slots,
                                             long long columns, T identity, const Fold& fold,
                                             const Store& store) {
  for (long long e = scatter_thread(); e < slots * columns; e += scatter_threads()) {
    const long long slot = e / columns, column = e - slot * columns;
    T sum = identity;
    const unsigned stop = end[slot];
#pragma unroll 4
    for (unsigned j = first[slot]; j < stop; ++j) sum = fold(sum, list[j], column);
    store(sum, slot, column);
  }
}
