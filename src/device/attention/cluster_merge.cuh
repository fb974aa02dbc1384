// Merges the states of a cluster's blocks, which have segments of the same rows, in the order of
// the segments, through distributed shared memory. Each block merges a part of the columns. The two
// consumer warpgroups of a block have halves of the columns (wide.cuh).
//
// A Form is that of merge.cuh.
#pragma once

#include "device/attention/merge.cuh"
#include "device/ptx.cuh"
#include "device/ptx_hopper.cuh"

// A block's state in shared memory: parts of 8 columns, in the order of the columns, have 16 bytes
// per thread of a warpgroup, in the layout of its registers.
constexpr int kPartBytes = 128 * 16;

template <int Parts, int N>
__device__ __forceinline__ void store_parts(char* to, const float (&o)[N][4]) {
  float4* const own = reinterpret_cast<float4*>(to) + (threadIdx.x & 127);
#pragma unroll
  for (int n = 0; n < Parts; ++n) own[n * 128] = make_float4(o[n][0], o[n][1], o[n][2], o[n][3]);
}
// Loads the parts of every block; `from` is the address of the first one in this block.
template <int Blocks, int Parts>
__device__ __forceinline__ void load_parts(float (&to)[Blocks][Parts][4], unsigned from) {
#pragma unroll
  for (unsigned i = 0; i < Blocks; ++i) {
    const unsigned block = ptx_map_shared(from, i) + (threadIdx.x & 127) * 16;
#pragma unroll
    for (int n = 0; n < Parts; ++n) ptx_load_cluster(to[i][n], block + n * kPartBytes);
  }
}

// Loads every block's state at this address.
template <typename State, int Blocks>
__device__ __forceinline__ void load_states(HeldParts<State, Blocks>& to, unsigned from) {
#pragma unroll
  for (unsigned i = 0; i < Blocks; ++i) {
    const unsigned block = ptx_map_shared(from, i);
    StateHead<State> head;
#pragma unroll
    for (int f = 0; f < kHeadFloats<State>; f += 4) {
      float four[4];
      ptx_load_cluster(four, block + f * 4);
#pragma unroll
      for (int e = 0; e < 4; ++e) head.floats[f + e] = four[e];
    }
    to.states[i] = head.state;
  }
}

// What a consumer thread has: the warpgroup 0 or 1, and a row of the tile; it has that row + 8 too.
struct ClusterPlace {
  int rank, group, tile_row;
};

// Merges the states `own` of the thread's rows, and their values o. Returns a column: afterwards o
// begins with the merged values of that column and those after it. The block's state overwrites
// `memory`; its heads begin `heads` bytes later. After the return only other blocks read it, until
// ptx_cluster_wait().
template <int Blocks, typename Form, int N>
__device__ __forceinline__ int merge_cluster(const Form& form, typename Form::State (&own)[2],
                                             float (&o)[N][4], char* memory, int heads,
                                             const ClusterPlace& place,
                                             const typename Form::Row (&rows)[2]) {
  using State = typename Form::State;
  constexpr int kPart = N / Blocks, kHead = kHeadFloats<State>;
  store_parts<N>(memory + place.group * N * kPartBytes, o);
  if ((threadIdx.x & 3) == 0) {
    float* const own_heads = reinterpret_cast<float*>(memory + heads) + place.tile_row * kHead;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (place.group == 0) store_state(own_heads + h * 8 * kHead, own[h]);
    }
  }
  ptx_cluster_arrive();
  ptx_cluster_wait();
  const unsigned address = ptx_shared_address(memory);
  const int first = (place.rank * 2 + place.group) * kPart;
  HeldParts<State, Blocks> parts[2];
  float values[Blocks][kPart][4];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    load_states(parts[h], address + heads + (place.tile_row + h * 8) * kHead * 4);
  }
  load_parts(values, address + first * kPartBytes);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    own[h] = merge_states(form, parts[h], rows[h]);
    float sums[kPart * 2] = {};
#pragma unroll
    for (int i = 0; i < Blocks; ++i) {
      float moved[kPart * 2];
#pragma unroll
      for (int x = 0; x < kPart * 2; ++x) moved[x] = values[i][x / 2][h * 2 + x % 2];
      form.move(moved, parts[h].states[i], own[h], rows[h]);
#pragma unroll
      for (int x = 0; x < kPart * 2; ++x) sums[x] += moved[x];
    }
#pragma unroll
    for (int x = 0; x < kPart * 2; ++x) o[x / 2][h * 2 + x % 2] = sums[x];
  }
  ptx_cluster_arrive();
  return first * 8;
}
