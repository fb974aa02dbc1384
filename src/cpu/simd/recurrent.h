// The gates of recurrent layers (RNN, GRU, LSTM): what follows the products of a step, for one
// sequence and a range of hidden units. Kernels exist for float32 and float64.
#pragma once

#include "cpu/simd/kernel_table.h"
#include "ops/recurrent/gate_function.h"

namespace redfuser::cpu {

using ops::Gate;
using ops::GateFunction;

// Pointers are to `units` elements of the kernel's type, except where stated.
struct CellArgs {
  int64_t units = 0;
  // Gate after gate in ONNX's order (LSTM: i, o, f, c; GRU: z, r, n): x·Wᵀ + h·Rᵀ and the biases.
  // Overwritten.
  void* sums = nullptr;
  const void* before = nullptr;  // h of the step before
  void* h = nullptr;
  void* c = nullptr;                                       // of an LSTM, in place
  const void* peepholes[3] = {nullptr, nullptr, nullptr};  // of i, o, f: all or none
  // Of a GRU: r ∘ before by gru_reset; read by gru_linear as before·Rᵀ of n with its bias.
  void* reset = nullptr;
  const Gate* gates = nullptr;  // f, g, h, as many as the operator has
  double clip = 0;              // sums are cut to [−clip, clip]; 0: they are not
  bool coupled = false;         // the forget gate is 1 − i
};
using CellFn = void (*)(const CellArgs& args);

struct RecurrentKernels {
  CellFn rnn;         // h = f(sum)
  CellFn lstm;        // c = f ∘ c + i ∘ g(c gate); h = o ∘ h(c)
  CellFn gru_reset;   // z and r, in place; reset = r ∘ before
  CellFn gru_finish;  // h = (1 − z) ∘ g(n) + z ∘ before, with z of gru_reset
  CellFn gru_linear;  // z and r; n += r ∘ reset; then as gru_finish
};

}  // namespace redfuser::cpu
