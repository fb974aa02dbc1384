// The lines of several planes with their padding, as windows that slide over them read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "cpu/opaque/image/im2col.h"
#include "cpu/opaque/image/window.h"

namespace redfuser::cpu {

// Slices [first, first + slices) of those that results have, all depths of a plane after each
// other, and of each the result's lines [begin, begin + lines).
struct SliceBand {
  int64_t first, slices, begin, lines;
};

// to[i] = from[i] for i < count. Short lines take two copies of a fixed size that overlap, which
// cost less than a call.
template <typename T>
void copy_short_line(const T* from, int64_t count, T* to) {
  const auto of_size = [&]<int64_t kSize>(std::integral_constant<int64_t, kSize>) {
    std::memcpy(to, from, kSize * sizeof(T));
    std::memcpy(to + count - kSize, from + count - kSize, kSize * sizeof(T));
  };
  if (count < 4 || count > 32) {
    std::copy_n(from, count, to);
  } else if (count <= 8) {
    of_size(std::integral_constant<int64_t, 4>{});
  } else if (count <= 16) {
    of_size(std::integral_constant<int64_t, 8>{});
  } else {
    of_size(std::integral_constant<int64_t, 16>{});
  }
}

// Lines in memory: [line modulo the stride][slice][line][column], so that a tap above each other
// reads the lines of successive results, and of successive slices, side by side.
template <typename T>
class PaddedLines {
 public:
  // Of `slices` slices in all, for so many workers. UserError for lines beyond the memory limit.
  PaddedLines(const Window& w, int64_t slices, int64_t workers, T empty)
      : w_(w), empty_(empty), step_(w.stride[1]) {
    const int64_t span = (w.output[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
    columns_ = std::max<int64_t>((span + w.stride[2] - 1) / w.stride[2], 1);
    pitch_ = w.stride[2] * columns_;
    from_ = std::max<int64_t>(-w.pad_begin[2], 0);
    at_ = std::min(std::max<int64_t>(w.pad_begin[2], 0), pitch_);
    width_ = std::max<int64_t>(std::min(w.input[2] - from_, pitch_ - at_), 0);
    if (is_wide()) {
      columns_ = (std::max(pitch_, at_ + whole_width()) + w.stride[2] - 1) / w.stride[2];
      columns_ = (columns_ + kWhole - 1) / kWhole * kWhole;
      pitch_ = w.stride[2] * columns_;
    }
    taps_ = std::min(1 + kTapLines / w.dilation[1], w.kernel[1]);
    lines_ = std::clamp<int64_t>(kElements / pitch_, 1, w.output[1]);
    for (int64_t phase = 0; phase < step_; ++phase) {
      int64_t tap = 0;
      while (tap < taps_ && tap * w.dilation[1] % step_ != phase) ++tap;
      if (tap < taps_) phases_.push_back(phase);
    }
    height_ = lines_ + (taps_ - 1) * w.dilation[1] / step_;
    slices_ = 1;
    if (lines_ == w.output[1]) {
      const int64_t most = std::max<int64_t>((slices + workers - 1) / workers, 1);
      slices_ = std::clamp<int64_t>(kElements / (height_ * pitch_), 1, most);
    }
    const bool inside = w.kernel[0] == 1 && w.pad_begin[0] == 0 && w.pad_end[0] == 0;
    steady_ = inside && lines_ == w.output[1] && taps_ == w.kernel[1];
    require_memory(element_count({step_, slices_, height_, pitch_}), sizeof(T));
  }

  T empty() const { return empty_; }
  int64_t slices() const { return slices_; }    // at once
  int64_t lines() const { return lines_; }      // of results of a slice at once
  int64_t height() const { return height_; }    // lines of a slice with one remainder
  int64_t pitch() const { return pitch_; }      // elements of a line
  int64_t columns() const { return columns_; }  // with one remainder
  int64_t taps() const { return taps_; }        // above each other at once
  // Of the input's line: the first column that is read, its place in a line here, and the columns.
  int64_t from() const { return from_; }
  int64_t at() const { return at_; }
  int64_t width() const { return width_; }
  // Lines of so many elements cost more to copy than calls for each slice do. Theirs here have room
  // for a whole number of vectors.
  bool is_wide() const { return width_ >= kWideLine; }
  int64_t whole_width() const { return (width_ + kWhole - 1) / kWhole * kWhole; }
  int64_t bands() const { return (w_.output[1] + lines_ - 1) / lines_; }  // of a slice
  int64_t size() const { return step_ * slices_ * height_ * pitch_; }

  // Of the first element that a tap of those loaded reads.
  int64_t offset(int64_t tap) const {
    const int64_t line = tap * w_.dilation[1];
    return (line % step_ * slices_ * height_ + line / step_) * pitch_;
  }

  // The lines that `taps` taps from `tap` on read in slices of depth `depth` of the kernel. `to`
  // has `empty` everywhere before its first load, and is used for nothing else.
  void load(const T* planes, const SliceBand& band, int64_t depth, int64_t tap, T* to) const {
    const int64_t first = band.begin * step_ + tap * w_.dilation[1] - w_.pad_begin[1];
    for (const int64_t phase : phases_) {
      for (int64_t s = 0; s < band.slices; ++s) {
        const int64_t plane = (band.first + s) / w_.output[0];
        const int64_t slice = (band.first + s) % w_.output[0] * w_.stride[0] +
                              depth * w_.dilation[0] - w_.pad_begin[0];
        const bool outside = slice < 0 || slice >= w_.input[0];
        const T* from = planes + ((plane * w_.input[0] + slice) * w_.input[1]) * w_.input[2];
        load(outside ? nullptr : from, first + phase,
             to + (phase * slices_ + s) * height_ * pitch_);
      }
    }
  }

 private:
  static constexpr int64_t kElements = 8192 / sizeof(T), kTapLines = 16;
  static constexpr int64_t kWideLine = 64, kWhole = 16;

  // Every step'th line of a slice from `line` on.
  void load(const T* slice, int64_t line, T* to) const {
    to += at_;
    for (int64_t i = 0; i < height_; ++i, line += step_, to += pitch_) {
      if (slice != nullptr && line >= 0 && line < w_.input[1]) {
        copy_short_line(slice + line * w_.input[2] + from_, width_, to);
      } else if (!steady_) {
        std::fill_n(to, width_, empty_);
      }
    }
  }

  const Window& w_;
  T empty_;
  int64_t step_;
  int64_t columns_, pitch_;
  int64_t from_, at_, width_;  // of the input's line: first column, its place, columns
  int64_t taps_, lines_, height_, slices_;
  std::vector<int64_t> phases_;  // remainders of lines that taps read
  bool steady_;                  // every load leaves the same lines empty
};

}  // namespace redfuser::cpu
