// Folds the windows of a plane by an operation, first the taps above each other, then those of a
// line: kernel[0] · kernel[1] + kernel[2] operations for each element instead of their product.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/opaque/image/im2col.h"
#include "cpu/opaque/image/window.h"

namespace redfuser::cpu {

// `rows` of `cols` elements: to[r, c] = a[r, c] ⊕ b[r, c], rows `stride` elements apart. `to` may
// be the memory of `a`.
template <typename T>
struct FoldRows {
  T* to;
  int64_t to_stride;
  const T *a, *b;
  int64_t a_stride, b_stride, rows, cols;
};

// Fold is a callable on FoldRows<T>. Taps outside of the input are left out. Long windows are
// folded in parts of kMostTaps, so that the rounding of sums grows with a part and the number of
// parts.
template <typename T, typename Fold>
class WindowFold {
 public:
  // `empty` is the result of no taps. UserError for lines beyond the memory limit.
  WindowFold(const Window& w, T empty, const Fold& fold) : w_(w), empty_(empty), fold_(fold) {
    phases_ = w.stride[2];
    const int64_t span = (w.output[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
    columns_ = std::max<int64_t>((span + phases_ - 1) / phases_, 1);
    pitch_ = phases_ * columns_;
    from_ = std::max<int64_t>(-w.pad_begin[2], 0);
    at_ = std::min(std::max<int64_t>(w.pad_begin[2], 0), pitch_);
    width_ = std::max<int64_t>(std::min(w.input[2] - from_, pitch_ - at_), 0);
    lines_ = std::clamp<int64_t>(kBandElements / pitch_, 1, std::max<int64_t>(w.output[1], 1));
    require_memory(element_count({4, lines_, pitch_}), sizeof(T));
  }

  // Parts of a plane, each with lines of one depth.
  int64_t bands() const { return w_.output[0] * ((w_.output[1] + lines_ - 1) / lines_); }
  // Elements of the scratch memory of `run`, which `prepare` readies once.
  int64_t scratch_size() const { return 4 * lines_ * pitch_; }
  void prepare(T* scratch) const { std::fill_n(scratch, scratch_size(), empty_); }

  // Writes the band's lines of `out`, the plane's results, and calls finish(line, d, h) for each.
  template <typename Finish>
  void run(int64_t band, const T* plane, T* out, T* scratch, const Finish& finish) const {
    const int64_t bands = (w_.output[1] + lines_ - 1) / lines_;
    const int64_t d = band / bands, h = band % bands * lines_;
    const int64_t count = std::min(lines_, w_.output[1] - h);
    const int64_t size = lines_ * pitch_;
    T *above = scratch, *part = scratch + size, *phases = scratch + 2 * size;
    fold_above(plane, d, h, count, above + at_, part + at_);
    if (phases_ > 1) separate(above, count, phases);
    fold_lines(phases_ > 1 ? phases : above, count, scratch + 3 * size, part);
    const T* line = scratch + 3 * size;
    T* to = out + (d * w_.output[1] + h) * w_.output[2];
    for (int64_t i = 0; i < count; ++i, line += columns_, to += w_.output[2]) {
      std::copy_n(line, w_.output[2], to);
      finish(to, d, h + i);
    }
  }

 private:
  static constexpr int64_t kBandElements = 4096, kMostTaps = 256;

  // total = ⊕ of `taps` terms of `count` rows; take(i, to, first) makes `to` term i, or folds it
  // into `to`.
  template <typename Take>
  void in_parts(int64_t taps, T* total, T* part, int64_t rows, int64_t cols,
                const Take& take) const {
    for (int64_t begin = 0; begin < taps; begin += kMostTaps) {
      T* to = begin == 0 ? total : part;
      const int64_t end = std::min(begin + kMostTaps, taps);
      for (int64_t i = begin; i < end; ++i) take(i, to, i == begin);
      if (begin > 0) fold_({total, pitch_, total, part, pitch_, pitch_, rows, cols});
    }
  }

  void fold_above(const T* plane, int64_t d, int64_t h, int64_t count, T* above, T* part) const {
    const int64_t step = w_.stride[1];
    in_parts(w_.kernel[0] * w_.kernel[1], above, part, count, width_,
             [&](int64_t tap, T* to, bool first) {
               const int64_t slice =
                   d * w_.stride[0] + tap / w_.kernel[1] * w_.dilation[0] - w_.pad_begin[0];
               const int64_t line =
                   h * step + tap % w_.kernel[1] * w_.dilation[1] - w_.pad_begin[1];
               // Rows whose tap is inside: 0 <= line + row · step < input.
               int64_t begin = line < 0 ? (-line + step - 1) / step : 0;
               int64_t end = line < w_.input[1] ? (w_.input[1] - line + step - 1) / step : 0;
               const bool outside = slice < 0 || slice >= w_.input[0];
               begin = outside ? count : std::min(begin, count);
               end = std::clamp(end, begin, count);
               const T* from = plane + (slice * w_.input[1] + line) * w_.input[2] + from_;
               const int64_t stride = step * w_.input[2];
               if (!first) {
                 T* rows = to + begin * pitch_;
                 return fold_({rows, pitch_, rows, from + begin * stride, pitch_, stride,
                               end - begin, width_});
               }
               for (int64_t row = 0; row < count; ++row) {
                 if (row >= begin && row < end) {
                   std::copy_n(from + row * stride, width_, to + row * pitch_);
                 } else {
                   std::fill_n(to + row * pitch_, width_, empty_);
                 }
               }
             });
  }

  // [line][column · phases + phase] to [phase][line][column], so that the elements of a tap lie
  // side by side.
  void separate(const T* lines, int64_t count, T* to) const {
    const int64_t all = count * columns_;  // pitch_ is a multiple of phases_: lines join
    if (phases_ == 2) {
      for (int64_t c = 0; c < all; ++c) {
        to[c] = lines[2 * c];
        to[lines_ * columns_ + c] = lines[2 * c + 1];
      }
      return;
    }
    for (int64_t phase = 0; phase < phases_; ++phase, to += lines_ * columns_) {
      for (int64_t c = 0; c < all; ++c) to[c] = lines[c * phases_ + phase];
    }
  }

  // Of all lines as one: elements behind a line's results are computed and not used.
  void fold_lines(const T* phases, int64_t count, T* to, T* part) const {
    const int64_t all = (count - 1) * columns_ + w_.output[2];
    in_parts(w_.kernel[2], to, part, 1, all, [&](int64_t tap, T* total, bool first) {
      const int64_t column = tap * w_.dilation[2];
      const T* from = phases + column % phases_ * lines_ * columns_ + column / phases_;
      if (first) {
        std::copy_n(from, all, total);
      } else {
        fold_({total, all, total, from, all, all, 1, all});
      }
    });
  }

  const Window& w_;
  T empty_;
  Fold fold_;
  int64_t phases_, columns_, pitch_;  // of a line; elements of each phase; of the line
  int64_t from_, at_, width_;         // of the input's line: first column, its place, columns
  int64_t lines_;                     // of a band
};

}  // namespace redfuser::cpu
