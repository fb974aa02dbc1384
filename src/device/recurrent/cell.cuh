// The gates and states of one unit of one sequence, from the products of a step.
//
// `Gates` is printed by src/codegen/recurrent: f, g and h are ONNX's activations, the first two
// with clipping; kCoupled: the forget gate is 1 − i.
#pragma once

#include "device/recurrent/config.cuh"

struct CellState {
  float h, c;  // c: of an LSTM
};

// Sums are x · Wᵀ + h · Rᵀ and the biases, in ONNX's order of gates. Peepholes are those of i, o,
// f.
template <typename Gates>
__device__ __forceinline__ void advance_lstm(const Gates& gates, const float (&sums)[4],
                                             const float (&peepholes)[3], CellState& state) {
  const float input = gates.f(sums[0] + peepholes[0] * state.c);
  const float forget = Gates::kCoupled ? 1.0f - input : gates.f(sums[2] + peepholes[2] * state.c);
  state.c = forget * state.c + input * gates.g(sums[3]);
  state.h = gates.f(sums[1] + peepholes[1] * state.c) * gates.h(state.c);
}

// z is an activation already.
template <typename Gates>
__device__ __forceinline__ void advance_gru(const Gates& gates, float z, float next,
                                            CellState& state) {
  state.h = (1.0f - z) * gates.g(next) + z * state.h;
}

template <typename Gates>
__device__ __forceinline__ void advance_rnn(const Gates& gates, float sum, CellState& state) {
  state.h = gates.f(sum);
}
