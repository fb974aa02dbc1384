#include "cpu/recurrent/chain.h"

#include <type_traits>

#include "cpu/recurrent/byte_matrix.h"
#include "cpu/recurrent/float_matrix.h"

namespace redfuser::cpu {

template <typename Matrix>
Chain<Matrix>::Chain(const RecurrentShape& shape, const LayerWeights<Matrix>& weights,
                     const LayerTensors<T>& tensors, int64_t direction, int64_t first,
                     int64_t count)
    : shape_(shape),
      weights_(weights[static_cast<size_t>(direction)]),
      tensors_(tensors),
      kernels_(std::is_same_v<T, float> ? *kernels().recurrent_f32 : *kernels().recurrent_f64),
      direction_(direction),
      first_(first),
      count_(count) {
  for (int64_t b = 0; b < count; ++b) state_offsets_.push_back(b * shape.hidden);
  load_states();
  load_bias();
  for (int64_t b = 0; b < count; ++b) {
    if (length(b) == 0) store_states(b, 0, shape.hidden, h_[0].data() + b * shape.hidden);
  }
  const auto longest = std::max_element(tensors.lengths.begin(), tensors.lengths.end());
  if (longest != tensors.lengths.end() && !shape.batch_first) {
    inputs_.fit(tensors.x, *longest * shape.batch * shape.input);
  } else {
    inputs_.fit(tensors.x, shape.steps * shape.batch * shape.input);
  }
}

template <typename Matrix>
int64_t Chain<Matrix>::state_row(int64_t b) const {
  return shape_.batch_first ? (first_ + b) * shape_.directions + direction_
                            : direction_ * shape_.batch + first_ + b;
}

template <typename Matrix>
int64_t Chain<Matrix>::y_row(int64_t b, int64_t step) const {
  const int64_t t = time(b, step), sequence = first_ + b;
  if (shape_.batch_first) {
    return (sequence * shape_.steps + t) * shape_.directions + direction_;
  }
  return (t * shape_.directions + direction_) * shape_.batch + sequence;
}

template <typename Matrix>
void Chain<Matrix>::load_states() {
  const auto size = static_cast<size_t>(count_ * shape_.hidden);
  const auto load = [&](const T* from, ChargedVector<T>& to) {
    to.assign(size, T{});
    for (int64_t b = 0; from != nullptr && b < count_; ++b) {
      std::copy_n(from + state_row(b) * shape_.hidden, shape_.hidden,
                  to.begin() + b * shape_.hidden);
    }
  };
  load(tensors_.h, h_[0]);
  h_[1].assign(size, T{});
  if (shape_.cell == Cell::Lstm) load(tensors_.c, c_);
  if (shape_.cell == Cell::Gru) reset_.assign(size, T{});
}

template <typename Matrix>
void Chain<Matrix>::store_states(int64_t b, int64_t unit, int64_t units, const T* h) const {
  const int64_t at = state_row(b) * shape_.hidden + unit;
  if (tensors_.y_h != nullptr) std::copy_n(h, units, tensors_.y_h + at);
  if (tensors_.y_c != nullptr) {
    std::copy_n(c_.begin() + b * shape_.hidden + unit, units, tensors_.y_c + at);
  }
}

template <typename Matrix>
void Chain<Matrix>::load_bias() {
  const int64_t gates = shape_.gates(), rows = gates * shape_.hidden;
  const bool linear = shape_.cell == Cell::Gru && shape_.linear_before_reset;
  bias_.assign(static_cast<size_t>(rows), T{});
  if (linear) next_bias_.assign(static_cast<size_t>(shape_.hidden), T{});
  if (tensors_.bias == nullptr) return;
  const T* w = tensors_.bias + direction_ * 2 * rows;
  const T* r = w + rows;
  auto* to = bias_.data();
  for (int64_t block = 0; block < shape_.blocks(); ++block) {
    for (const int64_t column : shape_.columns(block, 0, gates)) {
      const bool apart = linear && column >= 2 * shape_.hidden;
      *to++ = apart ? w[column] : w[column] + r[column];
    }
  }
  if (linear) std::copy_n(r + 2 * shape_.hidden, shape_.hidden, next_bias_.begin());
}

template <typename Matrix>
void Chain<Matrix>::reserve(int64_t steps) {
  if (steps * count_ <= capacity_) return;
  capacity_ = steps * count_;
  sums_ = Tensor(sizeof(T) == sizeof(float) ? DType::Float32 : DType::Float64,
                 {capacity_ * shape_.gates() * shape_.hidden});
}

template <typename Matrix>
void Chain<Matrix>::begin(int64_t step, int64_t steps) {
  begin_ = step;
  offsets_.clear();
  for (int64_t s = step; s < step + steps; ++s) {
    for (int64_t b = 0; b < count_; ++b) {
      // A sequence that has ended is computed with any input.
      const int64_t t = std::max<int64_t>(time(b, s), 0), sequence = first_ + b;
      const int64_t row =
          shape_.batch_first ? sequence * shape_.steps + t : t * shape_.batch + sequence;
      offsets_.push_back(row * shape_.input);
    }
  }
  inputs_.assign(tensors_.x, offsets_, shape_.input);
}

template <typename Matrix>
void Chain<Matrix>::project(int64_t block, int64_t row, int64_t rows) {
  const int64_t width = shape_.gates() * shape_.units(block);
  const T* bias = bias_.data() + shape_.gates() * block * RecurrentShape::kUnits;
  T* to = sums(block, row);
  for (int64_t i = 0; i < rows; ++i) std::copy_n(bias, width, to + i * width);
  weights_.input[static_cast<size_t>(block)].add(inputs_, row, rows, to, width);
}

template <typename Matrix>
void Chain<Matrix>::prepare() {
  states_.assign(h_[present_].data(), state_offsets_, shape_.hidden);
}

template <typename Matrix>
void Chain<Matrix>::prepare_second() {
  resets_.assign(reset_.data(), state_offsets_, shape_.hidden);
}

template <typename Matrix>
void Chain<Matrix>::advance(int64_t block, int64_t step) {
  const int64_t width = shape_.gates() * shape_.units(block);
  const int64_t unit = block * RecurrentShape::kUnits;
  T* to = sums(block, (step - begin_) * count_);
  weights_.state[static_cast<size_t>(block)].add(states_, 0, count_, to, width);
  if (shape_.cell == Cell::Rnn) return run_cells(block, step, kernels_.rnn, true);
  if (shape_.cell == Cell::Lstm) return run_cells(block, step, kernels_.lstm, true);
  if (two_phases()) return run_cells(block, step, kernels_.gru_reset, false);
  T* next = reset_.data() + unit;
  for (int64_t b = 0; b < count_; ++b) {
    std::copy_n(next_bias_.data() + unit, shape_.units(block), next + b * shape_.hidden);
  }
  weights_.next[static_cast<size_t>(block)].add(states_, 0, count_, next, shape_.hidden);
  run_cells(block, step, kernels_.gru_linear, true);
}

template <typename Matrix>
void Chain<Matrix>::advance_second(int64_t block, int64_t step) {
  const int64_t units = shape_.units(block), width = shape_.gates() * units;
  T* to = sums(block, (step - begin_) * count_);
  weights_.next[static_cast<size_t>(block)].add(resets_, 0, count_, to + 2 * units, width);
  run_cells(block, step, kernels_.gru_finish, true);
}

template <typename Matrix>
void Chain<Matrix>::load_gates(CellArgs& args, int64_t block) const {
  args.units = shape_.units(block);
  args.gates = tensors_.gates.data() +
               direction_ * static_cast<int64_t>(tensors_.gates.size()) / shape_.directions;
  args.clip = tensors_.clip;
  args.coupled = tensors_.coupled;
  for (int64_t i = 0; tensors_.peepholes != nullptr && i < 3; ++i) {
    args.peepholes[i] =
        tensors_.peepholes + (direction_ * 3 + i) * shape_.hidden + block * RecurrentShape::kUnits;
  }
}

// `last`: of the step, whose states are then defined.
template <typename Matrix>
void Chain<Matrix>::run_cells(int64_t block, int64_t step, Kernel kernel, bool last) {
  CellArgs args;
  load_gates(args, block);
  for (int64_t b = 0; b < count_; ++b) {
    const int64_t at = b * shape_.hidden + block * RecurrentShape::kUnits;
    const T* before = h_[present_].data() + at;
    T* h = h_[present_ ^ 1].data() + at;
    // The state of a sequence that has ended takes no part in what others are quantised by.
    if (step >= length(b)) {
      std::fill_n(h, args.units, T{});
      continue;
    }
    args.sums = sums(block, (step - begin_) * count_ + b);
    args.before = before;
    args.h = h;
    if (!c_.empty()) args.c = c_.data() + at;
    if (!reset_.empty()) args.reset = reset_.data() + at;
    kernel(args);
    if (!last) continue;
    if (step + 1 == length(b)) {
      store_states(b, block * RecurrentShape::kUnits, args.units, h);
    }
    if (tensors_.y == nullptr) continue;
    T* y = tensors_.y + y_row(b, step) * shape_.hidden + block * RecurrentShape::kUnits;
    std::copy_n(h, args.units, y);
  }
}

template class Chain<ByteMatrix>;
template class Chain<FloatMatrix<float>>;
template class Chain<FloatMatrix<double>>;

}  // namespace redfuser::cpu
