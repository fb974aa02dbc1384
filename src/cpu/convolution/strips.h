// The strips of output positions that a convolution's tasks compute, and the inputs that they read.
#pragma once

#include "cpu/convolution/convolution_plan.h"

namespace redfuser::cpu {

// Tasks for each thread at most: strips are halves, quarters, ... of an image.
inline constexpr int64_t kMostTasks = 32;

// Output lines [line, line + lines) of slice `slice`, and of each the columns [column, column +
// columns).
struct Strip {
  int64_t slice, line, lines, column, columns;
};

// Inputs along dimension `i` that so many outputs beside each other read, with those between taps.
int64_t span_of(const Window& window, size_t i, int64_t outputs);

// Equal strips of at most `lines` lines and `columns` columns; strips of several lines have whole
// lines.
class Strips {
 public:
  Strips(const Window& window, int64_t lines, int64_t columns);

  int64_t count() const { return window_.output[0] * down_ * across_; }
  Strip at(int64_t number) const;
  int64_t across() const { return across_; }  // of a line
  // The largest.
  int64_t lines() const { return lines_; }
  int64_t columns() const { return columns_; }

 private:
  const Window window_;
  int64_t lines_, columns_, down_, across_;
};

// No tap lies in the padding.
bool reads_within(const Window& window);

// The inputs of a strip in memory: the offsets of taps from the first output position's, and the
// steps between positions, in elements.
class StripInputs {
 public:
  // `copied`: each strip by itself, else from the tensor, which needs reads_within().
  StripInputs(const Window& window, int64_t channels, const Strips& strips, bool copied);

  bool copied() const { return copied_; }
  // Elements of a strip's inputs, and lines that lie apart from others, of all channels.
  int64_t read() const { return channels_ * read_; }
  int64_t lines_apart() const;
  const std::vector<int64_t>& offsets() const { return offsets_; }
  int64_t line_step() const { return line_step_; }
  int64_t step() const { return window_.stride[2]; }
  // Elements of a copy.
  int64_t size() const { return copied_ ? channels_ * plane_ : 0; }
  // Of the first output position's first tap, in an image in place.
  int64_t base(const Strip& strip) const;
  // Copies channels [first, last) of the image, with padding.
  template <typename T>
  void copy(const Strip& strip, const T* image, int64_t first, int64_t last, T* to) const;

 private:
  const Window window_;
  int64_t channels_;
  bool copied_;
  Size3 size_;  // of a channel of a strip, or of the whole input
  int64_t plane_, line_step_;
  int64_t read_;  // elements of a channel that a strip reads
  std::vector<int64_t> offsets_;
};

}  // namespace redfuser::cpu
