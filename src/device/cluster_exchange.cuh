// Exchange of values between the blocks of a cluster.
#pragma once

#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"

// All blocks' values of type T in every block's shared memory, written by st.async. Each block
// waits on an mbarrier of its own: the cluster barrier would also wait for all memory accesses in
// flight, and invalidate L1.
template <typename T, int Blocks>
struct ClusterExchange {
  static_assert(sizeof(T) % 8 == 0);
  T values[Blocks];
  unsigned long long barrier;

  // All threads call this at the start of the kernel.
  __device__ __forceinline__ void open() {
    if (threadIdx.x == 0) {
      const unsigned own = ptx_shared_address(&barrier);
      ptx_barrier_init(own, 1);
      ptx_barrier_init_fence();
      ptx_barrier_expect(own, Blocks * sizeof(T));
    }
    __syncwarp();
    ptx_cluster_arrive_relaxed();
  }

  // All threads call this once, after open() and a __syncthreads(). Sends the block's value to
  // every block of the cluster and waits for theirs; no block writes here afterwards.
  __device__ __forceinline__ void exchange(const T& own) {
    const unsigned mine = ptx_shared_address(&barrier);
    ptx_cluster_wait();
    if (threadIdx.x < Blocks) {
      store_remote(own,
                   ptx_map_shared(ptx_shared_address(&values[ptx_cluster_rank()]), threadIdx.x),
                   ptx_map_shared(mine, threadIdx.x));
    }
    while (!ptx_barrier_try_wait(mine, 0)) {
    }
  }

 private:
  __device__ __forceinline__ static void store_remote(const T& own, unsigned to, unsigned counted) {
    union U {
      T value;
      unsigned long long words[sizeof(T) / 8];
      __device__ U() {}
    } u;
    u.value = own;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T) / 8); ++i) {
      ptx_store_async(to + 8 * i, u.words[i], counted);
    }
  }
};
