// A line of a transposed convolution's output while it is summed up.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cpu/opaque/image/window.h"

namespace redfuser::cpu {

// An output line, of which the columns with one remainder modulo the stride lie side by side until
// it is written: contributions of a tap are then added vector by vector.
template <typename T>
class SplitLine {
 public:
  explicit SplitLine(const Window& w)
      : phases_(w.stride[2]),
        columns_(w.output[2]),
        pitch_((columns_ + phases_ - 1) / phases_),
        sums_(scratch<T>(std::max<int64_t>(pitch_ * phases_, 1))) {}

  void fill(T value) { std::fill_n(sums_.get(), pitch_ * phases_, value); }

  // Adds source[c] to column c · stride + offset for `count` columns, where there is one.
  void add(const T* source, int64_t count, int64_t offset) {
    const int64_t phase = (offset % phases_ + phases_) % phases_;
    const int64_t shift = (offset - phase) / phases_;
    const int64_t begin = std::max<int64_t>(-shift, 0), end = std::min(count, pitch_ - shift);
    T* to = sums_.get() + phase * pitch_ + shift;
    for (int64_t c = begin; c < end; ++c) to[c] += source[c];
  }

  void write(T* line) const {
    const T* from = sums_.get();
    if (phases_ == 1) {
      std::copy_n(from, columns_, line);
      return;
    }
    if (phases_ == 2) {
      for (int64_t c = 0; c < columns_ / 2; ++c) {
        line[2 * c] = from[c];
        line[2 * c + 1] = from[pitch_ + c];
      }
      if (columns_ % 2 != 0) line[columns_ - 1] = from[pitch_ - 1];
      return;
    }
    for (int64_t phase = 0; phase < phases_; ++phase, from += pitch_) {
      for (int64_t c = phase; c < columns_; c += phases_) line[c] = from[c / phases_];
    }
  }

 private:
  int64_t phases_, columns_, pitch_;
  ScratchArray<T> sums_;
};

}  // namespace redfuser::cpu
