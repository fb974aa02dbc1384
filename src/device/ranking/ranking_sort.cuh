// Sorts entries in shared memory, by all threads of a block.
#pragma once

#include "device/ranking/ranking.cuh"

template <typename Entry>
__device__ __forceinline__ int entries_before(const Entry* list, int count, const Entry& own) {
  int rank = 0;
#pragma unroll 8
  for (int i = 0; i < count; ++i) rank += list[i].before(own);
  return rank;
}

// Moves the first K of `count` <= PerThread * Threads entries to their sorted places, found by
// counting the entries before each; fills up with none(). Begins and ends with a barrier.
template <int K, int PerThread, int Threads, typename Entry>
__device__ __forceinline__ void place_entries(Entry* list, int count) {
  Entry own[PerThread];
  int rank[PerThread];
#pragma unroll
  for (int j = 0; j < PerThread; ++j) {
    const int i = j * Threads + static_cast<int>(threadIdx.x);
    rank[j] = K;
    if (i >= count) continue;
    own[j] = list[i];
    rank[j] = entries_before(list, count, own[j]);
  }
  __syncthreads();
#pragma unroll
  for (int j = 0; j < PerThread; ++j) {
    if (rank[j] < K) list[rank[j]] = own[j];
  }
  for (int i = count + static_cast<int>(threadIdx.x); i < K; i += Threads) list[i] = Entry::none();
  __syncthreads();
}

// The place of entry i while the list is sorted, so that threads with eight consecutive entries
// each address different banks.
__device__ __forceinline__ int sort_place(int i) { return i ^ (i >> 3 & 7); }

template <typename Entry>
__device__ __forceinline__ void sort_pair(Entry& a, Entry& b, bool forward) {
  const bool swap = b.before(a) == forward;
  const Entry first = swap ? b : a;
  b = swap ? a : b;
  a = first;
}

// Levels strides of a bitonic merge of `run` entries, starting with `stride`, in registers.
template <int Levels, int Threads, typename Entry>
__device__ __forceinline__ void sort_step(Entry* list, int size, int run, int stride) {
  constexpr int kGroup = 1 << Levels;
  const int low = stride >> (Levels - 1);
  const bool last = run == size && low == 1;
#pragma unroll 1
  for (int group = threadIdx.x; group < size >> Levels; group += Threads) {
    const int base = (group & -low) << Levels | (group & (low - 1));
    Entry own[kGroup];
#pragma unroll
    for (int e = 0; e < kGroup; ++e) own[e] = list[sort_place(base + e * low)];
#pragma unroll
    for (int distance = kGroup / 2; distance > 0; distance >>= 1) {
#pragma unroll
      for (int e = 0; e < kGroup; ++e) {
        if ((e & distance) == 0) sort_pair(own[e], own[e + distance], (base & run) == 0);
      }
    }
#pragma unroll
    for (int e = 0; e < kGroup; ++e) {
      const int i = base + e * low;
      list[last ? i : sort_place(i)] = own[e];
    }
  }
  __syncthreads();
}

// Sorts `size` entries, a power of two of at least 16 (bitonic sort; Batcher, 1968). Begins and
// ends with a barrier.
template <int Threads, typename Entry>
__device__ __forceinline__ void sort_entries(Entry* list, int size) {
#pragma unroll 1
  for (int group = threadIdx.x; group < size / 8; group += Threads) {
    Entry own[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) own[e] = list[8 * group + e];
#pragma unroll
    for (int run = 2; run <= 8; run <<= 1) {
#pragma unroll
      for (int distance = run / 2; distance > 0; distance >>= 1) {
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const bool forward = run < 8 ? (e & run) == 0 : (group & 1) == 0;
          if ((e & distance) == 0) sort_pair(own[e], own[e + distance], forward);
        }
      }
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) list[sort_place(8 * group + e)] = own[e];
  }
  __syncthreads();
#pragma unroll 1
  for (int run = 16; run <= size; run <<= 1) {
    int stride = run >> 1;
    // Three strides at a time; the last step is of adjacent entries.
    const int rest = (__ffs(run) - 1) % 3;
    if (rest == 1) sort_step<1, Threads>(list, size, run, stride);
    if (rest == 2) sort_step<2, Threads>(list, size, run, stride);
#pragma unroll 1
    for (stride >>= rest; stride > 0; stride >>= 3) {
      sort_step<3, Threads>(list, size, run, stride);
    }
  }
}

// The sum over the block. `sums`: three numbers of shared memory, 0 before round 0, used in turn;
// the sum of a round stays valid during the next round.
__device__ __forceinline__ int block_total(int own, int* sums, int round) {
  const int total = __reduce_add_sync(0xffffffffu, own);
  if ((threadIdx.x & 31) == 0 && total > 0) atomicAdd(sums + round % 3, total);
  if (threadIdx.x == 0) sums[(round + 1) % 3] = 0;
  __syncthreads();
  return sums[round % 3];
}

// The bound between the first K of `count` > K entries and the others, found bit by bit: first the
// key of the K-th entry, then among equal keys its position.
template <int K, int Threads, typename Entry>
__device__ __forceinline__ Entry last_entry(const Entry* list, int count, int* sums) {
  using Key = typename Entry::Key;
  Key key = Key(0);
  int round = 0;
#pragma unroll 1
  for (int bit = 8 * static_cast<int>(sizeof(Key)) - 1; bit >= 0; --bit, ++round) {
    const Key trial = key | Key(1) << bit;
    int own = 0;
    for (int i = threadIdx.x; i < count; i += Threads) own += list[i].key() >= trial;
    const int total = block_total(own, sums, round);
    if (total >= K) key = trial;
    if (total == K) return Entry::of(key, kNowhere);
  }
  unsigned complement = 0;
#pragma unroll 1
  for (int bit = 31; bit >= 0; --bit, ++round) {
    const Entry trial = Entry::of(key, ~(complement | 1u << bit));
    int own = 0;
    for (int i = threadIdx.x; i < count; i += Threads) own += !trial.before(list[i]);
    const int total = block_total(own, sums, round);
    if (total >= K) complement |= 1u << bit;
    if (total == K) break;
  }
  return Entry::of(key, ~complement);
}
