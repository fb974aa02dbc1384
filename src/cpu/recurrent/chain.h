// One direction of a recurrent layer for some of its sequences. Its steps depend on each other;
// chains, and the blocks of hidden units within a step, do not.
#pragma once

#include <array>

#include "base/memory_budget.h"
#include "cpu/recurrent/layer.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

template <typename Matrix>
class Chain {
 public:
  using T = typename Matrix::Element;

  // Sequences [first, first + count) of direction `direction`. The arguments must stay.
  Chain(const RecurrentShape& shape, const LayerWeights<Matrix>& weights,
        const LayerTensors<T>& tensors, int64_t direction, int64_t first, int64_t count);

  int64_t count() const { return count_; }
  // Room for so many present steps. Called by the thread of the run, whose memory is kept for later
  // runs.
  void reserve(int64_t steps);
  // Makes `steps` steps from `step` on the present ones, of at most as many as there is room for.
  void begin(int64_t step, int64_t steps);
  // The products with the input of `rows` rows from `row` on: a row for each present step and
  // sequence.
  void project(int64_t block, int64_t row, int64_t rows);
  // A step is, in this order: prepare; advance(block, step) for every block; where the cell has two
  // phases, prepare_second and advance_second(block, step) for every block; turn.
  void prepare();
  void advance(int64_t block, int64_t step);
  bool two_phases() const { return shape_.cell == Cell::Gru && !shape_.linear_before_reset; }
  void prepare_second();
  void advance_second(int64_t block, int64_t step);
  void turn() { present_ ^= 1; }

 private:
  using Kernel = void (*)(const CellArgs&);

  void load_states();
  // The states of a block's units, or of all, after the sequence's last step.
  void store_states(int64_t b, int64_t unit, int64_t units, const T* h) const;
  void load_bias();
  void load_gates(CellArgs& args, int64_t block) const;
  void run_cells(int64_t block, int64_t step, Kernel kernel, bool last);
  bool backward() const { return shape_.backward || direction_ == 1; }
  int64_t length(int64_t b) const { return tensors_.lengths[static_cast<size_t>(first_ + b)]; }
  int64_t time(int64_t b, int64_t step) const { return backward() ? length(b) - 1 - step : step; }
  int64_t state_row(int64_t b) const;
  int64_t y_row(int64_t b, int64_t step) const;
  T* sums(int64_t block, int64_t row) {
    const int64_t before = block * RecurrentShape::kUnits * capacity_;
    return sums_.as<T>() + shape_.gates() * (before + row * shape_.units(block));
  }

  const RecurrentShape& shape_;
  const DirectionWeights<Matrix>& weights_;
  const LayerTensors<T>& tensors_;
  const RecurrentKernels& kernels_;
  int64_t direction_, first_, count_;
  int64_t begin_ = 0, capacity_ = 0;  // the first present step; rows of sums_
  int present_ = 0;
  ChargedVector<T> bias_, next_bias_;  // of blocks, as their columns; of a linear GRU's n
  Tensor sums_;
  ChargedVector<T> c_, reset_;
  std::array<ChargedVector<T>, 2> h_;  // of the step before and of this one
  std::vector<int64_t> offsets_, state_offsets_;
  typename Matrix::Rows inputs_, states_, resets_;
};

}  // namespace redfuser::cpu
