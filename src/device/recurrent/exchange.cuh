// The states of all hidden units in the shared memory of every block that computes some of them.
//
// The exchanges of a layer are numbered: number 0 are the initial states, and each further one is
// h, or r ∘ h, of all units. Number e is in buffer e % 2. A block sends its part of number e + 1
// after it has read number e, and it has number e when all blocks have sent theirs, so that two
// buffers are enough and no other barrier is needed.
#pragma once

#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"

// Team: blocks of a cluster, which have kUnits units each. `piece` is the block's part, rows of
// kUnits elements; `states` are two buffers of kBatch rows of kPitch elements. Both are aligned to
// 16 bytes.
template <typename Config, int Team>
struct StateExchange {
  using T = typename Config::Element;
  static constexpr int kWidth = 16 / sizeof(T);  // elements of a store
  static constexpr int kVectors = Config::kUnits / kWidth;
  static constexpr int kPart = Config::kBatch * kVectors;  // stores to each block
  static constexpr int kBuffer = Config::kBatch * Config::kPitch;
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
