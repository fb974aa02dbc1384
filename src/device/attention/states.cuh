// Partial states of attention rows in memory. A block of states has the heads of its rows, then
// their value columns.
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

// A State is what a row has beside its value columns, of members with four bytes each. Its head in
// memory is filled up to 16 bytes.
template <typename State>
constexpr int kHeadFloats = (static_cast<int>(sizeof(State)) / 4 + 3) / 4 * 4;

template <typename State>
union StateHead {
  float floats[kHeadFloats<State>];
  State state;
};

template <typename State>
__device__ __forceinline__ State load_state(const float* from) {
  StateHead<State> head;
  load_floats(head.floats, from);
  return head.state;
}

template <typename State>
__device__ __forceinline__ void store_state(float* to, const State& state) {
  StateHead<State> head = {};
  head.state = state;
  store_floats(to, head.floats);
}

// Of `Rows` rows of a Form: its value columns begin at kValues.
template <int Rows, typename Form>
struct StateBlock {
  static constexpr int kHead = kHeadFloats<typename Form::State>;
  static constexpr int kValues = Rows * kHead;
  static constexpr int kFloats = kValues + Rows * Form::kColumns;
};
