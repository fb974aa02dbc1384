// The sizes of a recurrent layer, and its division into blocks of hidden units: the columns of a
// block's matrices are its units' gates, gate after gate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ops/recurrent/recurrent_layer.h"

namespace redfuser::cpu {

using ops::Cell;

struct RecurrentShape {
  Cell cell = Cell::Lstm;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1;
  bool batch_first = false;  // x, y and the states begin with the batch
  bool backward = false;     // the first direction is the backward one
  // Of a GRU: r multiplies h·Rᵀ of n with its bias, rather than h.
  bool linear_before_reset = false;

  static constexpr int64_t kUnits = 64;  // of a block

  int64_t gates() const { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }
  // The gates whose product with the state is added to the product with the input at once.
  int64_t direct_gates() const { return cell == Cell::Gru ? 2 : gates(); }
  int64_t blocks() const { return (hidden + kUnits - 1) / kUnits; }
  int64_t units(int64_t block) const { return std::min(kUnits, hidden - block * kUnits); }
  // The rows of W and R (of all gates' units) that are the columns of gates [first, last).
  std::vector<int64_t> columns(int64_t block, int64_t first, int64_t last) const;
};

}  // namespace redfuser::cpu
