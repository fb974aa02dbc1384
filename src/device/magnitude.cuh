// Bounds of a tensor's elements.
#pragma once

#include "device/math.cuh"
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
