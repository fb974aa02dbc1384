// Whether attention may skip hidden keys: a kernel before it finds the largest magnitudes of the
// operands of masked elements, and decides by them.
#pragma once

#include "device/math.cuh"
#include "device/ptx_split.cuh"
#include "device/reduce.cuh"
#include "device/types.cuh"

// The largest magnitude of the elements in every `step`th group of 16 bytes from group `first` on;
// NaN if one of them is NaN.
template <typename T>
__device__ __forceinline__ float largest_magnitude(const T* data, long long count, long long first,
                                                   long long step) {
  constexpr int kGroup = 16 / static_cast<int>(sizeof(T));
  float largest = 0, group[kGroup];
  const auto take = [&] {
#pragma unroll
    for (int i = 0; i < kGroup; ++i) largest = max_of(largest, fabsf(group[i]));
  };
  long long from = first * kGroup;
  if (aligned(data)) {
#pragma unroll 4
    for (; from + kGroup <= count; from += step * kGroup) {
      load_group<kGroup>(group, data, from, kGroup, true);
      take();
    }
  }
  for (; from < count; from += step * kGroup) {
    load_group<kGroup>(group, data, from, count - from, false);
    take();
  }
  return largest;
}

template <typename T>
struct MaskOperand {
  const T* data;
  long long count;  // of elements
};
template <typename T>
__device__ __forceinline__ MaskOperand<T> mask_operand(const T* data, long long count) {
  return {data, count};
}

// Stores the largest magnitude of the elements that the block has of an operand.
template <int Threads, typename T>
__device__ __forceinline__ void store_magnitude(float* to, const MaskOperand<T>& operand,
                                                char* slots) {
  const long long first = static_cast<long long>(blockIdx.x) * Threads + threadIdx.x;
  const long long step = static_cast<long long>(gridDim.x) * Threads;
  const float largest = block_reduce<Threads / 32, MaxOp>(
      largest_magnitude(operand.data, operand.count, first, step), slots);
  __syncthreads();
  if (threadIdx.x == 0) *to = largest;
}

// Sets found[0] to 1 where holds(largest) is true, with the largest magnitude of each operand, NaN
// where it has one, and else to 0. `found` has room for 1 + gridDim.x · operands floats; the
// counter is 0 before and after.
template <int Threads, typename Holds, typename... T>
__device__ __forceinline__ void check_masks(float* found, unsigned* counter, const Holds& holds,
                                            const MaskOperand<T>&... operands) {
  constexpr int kWarps = Threads / 32, kOperands = sizeof...(operands);
  __shared__ __align__(16) char slots[kWarps * kSlotBytes];
  __shared__ unsigned before;
  float* of_block = found + 1 + blockIdx.x * kOperands;
  (store_magnitude<Threads>(of_block++, operands, slots), ...);
  if (threadIdx.x == 0) before = ptx_count(counter, gridDim.x - 1);
  __syncthreads();
  if (before != gridDim.x - 1) return;
  float largest[kOperands];
#pragma unroll
  for (int i = 0; i < kOperands; ++i) {
    float of_thread = 0;
    for (unsigned block = threadIdx.x; block < gridDim.x; block += Threads) {
      of_thread = max_of(of_thread, found[1 + block * kOperands + i]);
    }
    largest[i] = block_reduce<kWarps, MaxOp>(of_thread, slots);
    __syncthreads();
  }
  if (threadIdx.x == 0) found[0] = holds(largest) ? 1.0f : 0.0f;
}
