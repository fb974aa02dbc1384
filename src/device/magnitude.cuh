// Bounds of what tensors hold.
#pragma once

// The largest magnitude of the elements from group `first` on, every `step`th group of 16 bytes:
// NaN if one of them is NaN.
template <typename T>
__device__ __forceinline__ float largest_magnitude(const T* data, long long count, long long first,
                                                   long long step) {
  constexpr int kGroup = 16 / static_cast<int>(sizeof(T));
  const bool vector = aligned(data);
  float largest = 0;
#pragma unroll 4
  for (long long from = first * kGroup; from < count; from += step * kGroup) {
    float group[kGroup];
    load_group<kGroup>(group, data, from, count - from, vector && count - from >= kGroup);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) largest = max_of(largest, fabsf(group[i]));
  }
  return largest;
}
