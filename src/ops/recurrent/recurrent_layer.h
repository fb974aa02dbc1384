// The attributes of RNN, GRU and LSTM, as every device reads them.
#pragma once

#include <vector>

#include "ops/op_def.h"
#include "ops/recurrent/gate_function.h"

namespace redfuser::ops {

enum class Cell : uint8_t { Rnn, Gru, Lstm };

struct RecurrentLayer {
  Cell cell = Cell::Lstm;
  int64_t directions = 1;
  bool batch_first = false;  // x, y and the states begin with the batch
  bool backward = false;     // the first direction is the backward one
  // Of a GRU: r multiplies h·Rᵀ of n with its bias, rather than h.
  bool linear_before_reset = false;
  double clip = 0;          // sums are cut to [−clip, clip]; 0: they are not
  bool coupled = false;     // of an LSTM: the forget gate is 1 − i
  std::vector<Gate> gates;  // of every direction, in turn: f, g, h, as many as the operator has
};

// UserError for activations that are unknown or not as many as needed.
RecurrentLayer recurrent_layer(const NodeView& view, Cell cell);

}  // namespace redfuser::ops
