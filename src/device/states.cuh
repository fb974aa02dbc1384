// States of rows in memory (codegen/attention/mma/split_kv_merge.h).
#pragma once

// N floats, a multiple of 4, at an address aligned to 16 bytes.
template <int N>
__device__ __forceinline__ void load_floats(float (&to)[N], const float* from) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + i);
    to[i] = four.x;
    to[i + 1] = four.y;
    to[i + 2] = four.z;
    to[i + 3] = four.w;
  }
}

template <int N>
__device__ __forceinline__ void store_floats(float* to, const float (&from)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    *reinterpret_cast<float4*>(to + i) =
        make_float4(from[i], from[i + 1], from[i + 2], from[i + 3]);
  }
}
