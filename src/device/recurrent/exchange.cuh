// The states of all hidden units in the shared memory of every block that computes some of them.
//
// The exchanges of a layer are numbered: number 0 are the initial states, and each further one is
// h, or r ∘ h, of all units. Number e is in buffer e % 2. A block sends its part of number e + 1
// after it has read number e, and it has number e when all blocks have sent theirs, so that two
// buffers are enough and no other barrier is needed.
#pragma once

#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"
#include "device/ptx_split.cuh"

// Team: blocks of a cluster, which have kUnits units each. `piece` is the block's part, rows of
// kUnits elements; `states` are two buffers of kBatch rows of kPitch elements. Both are aligned to
// 16 bytes.
template <typename Config, int Team, bool Grid>
struct StateExchange {
  using T = typename Config::Element;
  static constexpr int kWidth = 16 / sizeof(T);  // elements of a store
  static constexpr int kVectors = Config::kUnits / kWidth;
  static constexpr int kPart = Config::kBatch * kVectors;  // stores to each block
  static constexpr int kBuffer = Config::kBatch * Config::kPitch, kBuffers = 2;
  static_assert(Config::kUnits % kWidth == 0);

  T *states, *piece;
  unsigned barriers;  // two mbarriers, of 8 bytes each
  int rank;

  __device__ __forceinline__ const T* buffer(int number) const {
    return states + number % 2 * kBuffer;
  }

  // All threads call this at the start, and begin() before the first send. The initial states are
  // the block's own work between them.
  __device__ __forceinline__ void open() {
#if __CUDA_ARCH__ >= 900
    if constexpr (Team > 1) {
      rank = static_cast<int>(ptx_cluster_rank());
      if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) ptx_barrier_init(barriers + 8 * i, 1);
        ptx_barrier_init_fence();
        for (int i = 0; i < 2; ++i) expect(i);
      }
    }
#endif
  }
  __device__ __forceinline__ void begin() const {
    __syncthreads();
#if __CUDA_ARCH__ >= 900
    if constexpr (Team > 1) meet();
#endif
  }

  // Sends the piece as a part of a number; a __syncthreads() separates this from its writes.
  __device__ __forceinline__ void send(int number) const {
    T* const to = states + number % 2 * kBuffer;
    for (int task = threadIdx.x; task < kPart * Team; task += Config::kWarps * 32) {
      const int vector = task % kPart, row = vector / kVectors;
      const int column = vector % kVectors * kWidth;
      const uint4 bits = *reinterpret_cast<const uint4*>(piece + row * Config::kUnits + column);
      T* const at = to + row * Config::kPitch + rank * Config::kUnits + column;
      if constexpr (Team == 1) *reinterpret_cast<uint4*>(at) = bits;
#if __CUDA_ARCH__ >= 900
      if constexpr (Team > 1) {
        const unsigned block = (task / kPart + rank) % Team;
        ptx_store_async(ptx_map_shared(ptx_shared_address(at), block), bits,
                        ptx_map_shared(barriers + number % 2 * 8, block));
      }
#endif
    }
  }

  // Waits until the number is complete, from 1 on. All threads call this.
  __device__ __forceinline__ void wait(int number) const {
#if __CUDA_ARCH__ >= 900
    if constexpr (Team > 1) {
      const unsigned barrier = barriers + number % 2 * 8;
      while (!ptx_barrier_try_wait(barrier, (number - 1) / 2 % 2)) {
      }
      // The next phase needs the block's own part, which follows a __syncthreads() of all waits.
      if (threadIdx.x == 0) expect(number % 2);
    }
#endif
    if constexpr (Team == 1) __syncthreads();
  }

  // No block ends while others may reach its memory.
  __device__ __forceinline__ void end() const {
#if __CUDA_ARCH__ >= 900
    if constexpr (Team > 1) meet();
#endif
  }

 private:
#if __CUDA_ARCH__ >= 900
  __device__ __forceinline__ void expect(int which) const {
    ptx_barrier_expect(barriers + 8 * which, kPart * Team * 16);
  }
  static __device__ __forceinline__ void meet() {
    ptx_cluster_arrive();
    ptx_cluster_wait();
  }
#endif
};

// The same among any blocks of a grid that run together, through memory: `shared` has two buffers
// of Team parts of kBatch rows, and `counters` are two numbers of the team, 0 before and after. A
// block copies the parts of all blocks to its one buffer in shared memory.
template <typename Config, int Team>
struct StateExchange<Config, Team, true> {
  using T = typename Config::Element;
  static constexpr int kWidth = 16 / sizeof(T);
  static constexpr int kVectors = Config::kUnits / kWidth;
  static constexpr int kPart = Config::kBatch * kVectors;
  static constexpr int kBuffer = Config::kBatch * Config::kPitch, kBuffers = 1;
  static constexpr int kThreads = Config::kWarps * 32;
  // Elements of a team's buffers, and the distance of teams' counters.
  static constexpr int kShared = 2 * kPart * Team * kWidth, kCounters = 32;
  static_assert(Config::kUnits % kWidth == 0);

  T *states, *piece, *shared;
  unsigned* counters;
  unsigned barriers;
  int rank;

  __device__ __forceinline__ const T* buffer(int) const { return states; }
  __device__ __forceinline__ void open() const {}
  __device__ __forceinline__ void begin() const { __syncthreads(); }

  __device__ __forceinline__ void send(int number) const {
    uint4* const to = parts(number) + rank * kPart;
    for (int i = threadIdx.x; i < kPart; i += kThreads) {
      to[i] = reinterpret_cast<const uint4*>(piece)[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) ptx_count_release(counters);
  }

  __device__ __forceinline__ void wait(int number) const {
    if (threadIdx.x == 0) {
      while (ptx_load_acquire(counters) < static_cast<unsigned>(number) * Team) {
      }
    }
    __syncthreads();
    const uint4* const from = parts(number);
#pragma unroll 4
    for (int i = threadIdx.x; i < kPart * Team; i += kThreads) {
      const int block = i / kPart, row = i % kPart / kVectors, vector = i % kVectors;
      T* const to = states + row * Config::kPitch + block * Config::kUnits + vector * kWidth;
      *reinterpret_cast<uint4*>(to) = ptx_load_global(from + i);
    }
    __syncthreads();
  }

  // The last block of the team restores the counter; none waits any more.
  __device__ __forceinline__ void end() const {
    if (threadIdx.x == 0 && ptx_count(counters + 1, Team - 1) == Team - 1) counters[0] = 0;
  }

 private:
  __device__ __forceinline__ uint4* parts(int number) const {
    return reinterpret_cast<uint4*>(shared) + number % 2 * kPart * Team;
  }
};
