// The sums of a thin product over the warps of a block and over the blocks of a cluster, in a fixed
// order.
#pragma once

#include "device/product/thin_tile.cuh"
#include "device/ptx_barrier.cuh"

// Shared memory of a block.
template <typename Tile>
struct ThinSlots {
  static constexpr int kPitch = Tile::Wide + 2;
  // Results of the cluster are divided among its blocks: this many at most for each.
  static constexpr int kShare = Tile::Blocks > 1 ? Tile::Lines* Tile::Wide / Tile::Blocks : 1;
  float parts[Tile::Warps][Tile::Group][kPitch];
  // From each block of the cluster, its sums of this block's results.
  float shares[Tile::Blocks][Tile::Products][kShare];
  unsigned long long barrier;  // counts the bytes of `shares`
};

template <typename Tile>
class ThinSums {
 public:
  using Slots = ThinSlots<Tile>;

  // `lines`: of the thin matrix, Tile::Lines at most.
  __device__ __forceinline__ ThinSums(Slots& slots, int lines) : slots_(slots), lines_(lines) {}

  // All threads call this at the start of the kernel.
  __device__ __forceinline__ void open() {
#if __CUDA_ARCH__ >= 900
    if constexpr (Tile::Blocks > 1) {
      if (threadIdx.x == 0) {
        const unsigned own = ptx_shared_address(&slots_.barrier);
        ptx_barrier_init(own, 1);
        ptx_barrier_init_fence();
        ptx_barrier_expect(own, Tile::Blocks * Tile::Products * share() * sizeof(float));
      }
      __syncwarp();
      ptx_cluster_arrive_relaxed();
    }
#endif
  }

  // Adds the sums of all warps and of all blocks of the cluster, and calls finish(wide line of the
  // block, thin line, sums of the products) for each result, by one thread of the cluster.
  template <typename Finish>
  __device__ __forceinline__ void finish(
      const float (&sums)[Tile::Products][Tile::Groups][Tile::Sums], Finish finish) {
#pragma unroll
    for (int g = 0; g < Tile::Groups; ++g) {
      if (g > 0 && g * Tile::Group >= lines_) break;
      float totals[Tile::Products][kTurns];
#pragma unroll
      for (int p = 0; p < Tile::Products; ++p) add_warps(totals[p], sums[p][g], g);
#if __CUDA_ARCH__ >= 900
      if constexpr (Tile::Blocks > 1) {
        if (g == 0) ptx_cluster_wait();
      }
#endif
#pragma unroll
      for (int i = 0; i < kTurns; ++i) {
        const int at = place(i);
        if (at >= results(g)) continue;
        float own[Tile::Products];
#pragma unroll
        for (int p = 0; p < Tile::Products; ++p) own[p] = totals[p][i];
        deliver(g * Tile::Group * Tile::Wide + at, own, finish);
      }
    }
#if __CUDA_ARCH__ >= 900
    if constexpr (Tile::Blocks > 1) finish_cluster(finish);
#endif
  }

 private:
  // Results of a group that a thread adds.
  static constexpr int kTurns = (Tile::Group * Tile::Wide + Tile::Threads - 1) / Tile::Threads;

  static __device__ __forceinline__ int place(int turn) {
    return turn * Tile::Threads + static_cast<int>(threadIdx.x);
  }
  // Results of a block of the cluster; of a group.
  __device__ __forceinline__ int share() const { return lines_ * Tile::Wide / Tile::Blocks; }
  __device__ __forceinline__ int results(int group) const {
    return min(Tile::Group, lines_ - group * Tile::Group) * Tile::Wide;
  }

  __device__ __forceinline__ void add_warps(float (&totals)[kTurns],
                                            const float (&sums)[Tile::Sums], int group) {
    __syncthreads();
    store(slots_.parts[threadIdx.x >> 5], sums, group);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      totals[i] = 0;
      const int at = place(i);
      if (at >= results(group)) continue;
#pragma unroll
      for (int w = 0; w < Tile::Warps; ++w) {
        totals[i] += slots_.parts[w][at / Tile::Wide][at % Tile::Wide];
      }
    }
  }

  __device__ __forceinline__ void store(float (&to)[Tile::Group][Slots::kPitch],
                                        const float (&sums)[Tile::Sums], int group) const {
    const int number = thin_number(), quarter = thin_quarter();
    if constexpr (Tile::Tensor) {
      if (group * Tile::Group + 2 * quarter >= lines_) return;
#pragma unroll
      for (int i = 0; i < Tile::Sums / 4; ++i) {
        const int line = Tile::Along ? 16 * i + number : 8 * number + 2 * i;
        constexpr int kNext = Tile::Along ? 8 : 1;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          to[2 * quarter + (c & 1)][line + (c >> 1) * kNext] = sums[4 * i + c];
        }
      }
    } else {
#pragma unroll
      for (int l = 0; l < Tile::Group; ++l) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          float sum = sums[4 * l + i];
          sum += __shfl_xor_sync(0xffffffffu, sum, 1);
          sum += __shfl_xor_sync(0xffffffffu, sum, 2);
          if (quarter == i) to[l][Tile::Along ? 8 * i + number : 4 * number + i] = sum;
        }
      }
    }
  }

  // Result `result` of all groups: to the block of the cluster that has it in its share.
  template <typename Finish>
  __device__ __forceinline__ void deliver(int result, const float (&sums)[Tile::Products],
                                          Finish& finish) {
    if constexpr (Tile::Blocks == 1) {
      finish(result % Tile::Wide, result / Tile::Wide, sums);
    } else {
#if __CUDA_ARCH__ >= 900
      const int block = result / share(), at = result - block * share();
      const unsigned barrier = ptx_map_shared(ptx_shared_address(&slots_.barrier), block);
#pragma unroll
      for (int p = 0; p < Tile::Products; ++p) {
        float* const slot = &slots_.shares[ptx_cluster_rank()][p][at];
        ptx_store_async(ptx_map_shared(ptx_shared_address(slot), block), sums[p], barrier);
      }
#endif
    }
  }

#if __CUDA_ARCH__ >= 900
  template <typename Finish>
  __device__ __forceinline__ void finish_cluster(Finish& finish) {
    while (!ptx_barrier_try_wait(ptx_shared_address(&slots_.barrier), 0)) {
    }
#pragma unroll 1
    for (int at = static_cast<int>(threadIdx.x); at < share(); at += Tile::Threads) {
      float sums[Tile::Products];
#pragma unroll
      for (int p = 0; p < Tile::Products; ++p) {
        sums[p] = slots_.shares[0][p][at];
#pragma unroll
        for (int b = 1; b < Tile::Blocks; ++b) sums[p] += slots_.shares[b][p][at];
      }
      const int result = static_cast<int>(ptx_cluster_rank()) * share() + at;
      finish(result % Tile::Wide, result / Tile::Wide, sums);
    }
  }
#endif

  Slots& slots_;
  int lines_;
};
