// Reductions over lanes, warps, blocks and clusters. Every participant gets the result, and the
// order of combination is fixed.
#pragma once

#include "device/math.cuh"
#include "device/ptx.cuh"

struct SumOp {
  template <typename T>
  static __device__ __forceinline__ T apply(T a, T b) {
    return a + b;
  }
};
struct ProdOp {
  template <typename T>
  static __device__ __forceinline__ T apply(T a, T b) {
    return a * b;
  }
};
struct MaxOp {
  template <typename T>
  static __device__ __forceinline__ T apply(T a, T b) {
    return max_of(a, b);
  }
};
struct MinOp {
  template <typename T>
  static __device__ __forceinline__ T apply(T a, T b) {
    return min_of(a, b);
  }
};

// A value and its index; -1 is "none". NaN ranks first, then the value, then the lower index.
template <typename T>
struct Ranked {
  T value;
  long long index;
};
template <bool Large, typename T>
__device__ __forceinline__ bool ranks_before(const Ranked<T>& a, const Ranked<T>& b) {
  if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
  const bool a_nan = is_nan(a.value), b_nan = is_nan(b.value);
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && a.value != b.value) return Large ? a.value > b.value : a.value < b.value;
  return a.index < b.index;
}
struct FirstLargeOp {
  template <typename T>
  static __device__ __forceinline__ Ranked<T> apply(const Ranked<T>& a, const Ranked<T>& b) {
    return ranks_before<true>(b, a) ? b : a;
  }
};
struct FirstSmallOp {
  template <typename T>
  static __device__ __forceinline__ Ranked<T> apply(const Ranked<T>& a, const Ranked<T>& b) {
    return ranks_before<false>(b, a) ? b : a;
  }
};

template <typename T>
__device__ __forceinline__ T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
__device__ __forceinline__ bool shuffle_xor(bool value, int mask) {
  return __shfl_xor_sync(0xffffffffu, static_cast<int>(value), mask) != 0;
}
template <typename T>
__device__ __forceinline__ Ranked<T> shuffle_xor(Ranked<T> value, int mask) {
  return {shuffle_xor(value.value, mask), shuffle_xor(value.index, mask)};
}

template <typename Op, typename T>
__device__ __forceinline__ T warp_reduce(T value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) {
    const T other = shuffle_xor(value, mask);
    // Both partners combine in the order of their lanes.
    value = (threadIdx.x & mask) ? Op::apply(other, value) : Op::apply(value, other);
  }
  return value;
}

// The same over the lanes that differ in the bits from High down to Low alone, both powers of two.
template <typename Op, int High, int Low, typename T>
__device__ __forceinline__ T mask_reduce(T value) {
#pragma unroll
  for (int mask = High; mask >= Low && mask > 0; mask >>= 1) {
    const T other = shuffle_xor(value, mask);
    value = (threadIdx.x & mask) ? Op::apply(other, value) : Op::apply(value, other);
  }
  return value;
}

constexpr int kSlotBytes = 16;

// Over the `Warps` warps of a block. `slots`: Warps slots, not reused before the next
// __syncthreads().
template <int Warps, typename Op, typename T>
__device__ __forceinline__ T block_reduce(T value, char* slots) {
  static_assert(sizeof(T) <= kSlotBytes);
  value = warp_reduce<Op>(value);
  if constexpr (Warps == 1) return value;
  if ((threadIdx.x & 31) == 0) {
    *reinterpret_cast<T*>(slots + (threadIdx.x >> 5) * kSlotBytes) = value;
  }
  __syncthreads();
  T result = *reinterpret_cast<const T*>(slots);
#pragma unroll
  for (int warp = 1; warp < Warps; ++warp) {
    result = Op::apply(result, *reinterpret_cast<const T*>(slots + warp * kSlotBytes));
  }
  return result;
}

#if __CUDA_ARCH__ >= 900
template <typename T>
__device__ __forceinline__ T load_remote(unsigned address) {
  union {
    unsigned long long words[2];
    char bytes[16];
  } raw;
  raw.words[0] = ptx_load_cluster(address);
  if constexpr (sizeof(T) > 8) raw.words[1] = ptx_load_cluster(address + 8);
  return *reinterpret_cast<T*>(raw.bytes);
}

// Over the blocks of a cluster, through distributed shared memory. `slots`: Warps + 1 slots.
template <int Blocks, int Warps, typename Op, typename T>
__device__ __forceinline__ T cluster_reduce(T value, char* slots) {
  value = block_reduce<Warps, Op>(value, slots);
  char* own = slots + Warps * kSlotBytes;
  if (threadIdx.x == 0) *reinterpret_cast<T*>(own) = value;
  ptx_cluster_arrive();
  ptx_cluster_wait();
  const unsigned address = ptx_shared_address(own);
  T result = load_remote<T>(ptx_map_shared(address, 0));
#pragma unroll
  for (unsigned rank = 1; rank < Blocks; ++rank) {
    result = Op::apply(result, load_remote<T>(ptx_map_shared(address, rank)));
  }
  return result;
}
#endif
