// Folds the windows of planes by an operation, first the taps above each other, then those of a
// line: kernel[0] · kernel[1] + kernel[2] operations for each element instead of their product.
#pragma once

#include <bit>
#include <utility>

#include "cpu/opaque/image/padded_lines.h"
#include "cpu/simd/kernel_table.h"

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

// Fold is a callable on FoldRows<T>. Long windows are folded in parts, so that the rounding of sums
// grows with a part and the number of parts.
template <typename T, typename Fold>
class WindowFold {
 public:
  // Of `planes` planes by so many workers. `empty` is the result of no taps, and changes nothing
  // that it is folded with. UserError for lines beyond the memory limit.
  WindowFold(const Window& w, int64_t planes, int64_t workers, T empty, const Fold& fold)
      : w_(w),
        slices_(planes * w.output[0]),
        padded_(w, slices_, workers, empty),
        fold_(fold),
        columns_(padded_.columns()) {
    // The lines between the results of two slices are folded as well where they are few.
    constexpr int64_t kFewElements = 64;
    const int64_t between = (padded_.height() - padded_.lines()) * padded_.pitch();
    height_ = between <= kFewElements ? padded_.height() : padded_.lines();
    size_ = padded_.slices() * height_ * padded_.pitch();
    const bool flat = w.kernel[0] == 1 && w.pad_begin[0] == 0 && w.pad_end[0] == 0;
    direct_ = flat && w.kernel[1] <= kMostTaps && padded_.is_wide();
    require_memory(element_count({4, size_}), sizeof(T));
  }

  // Independent parts of the work.
  int64_t tasks() const {
    return (slices_ + padded_.slices() - 1) / padded_.slices() * padded_.bands();
  }
  // Elements of the scratch memory of `run`, which `prepare` readies once.
  int64_t scratch_size() const { return padded_.size() + 4 * size_; }
  void prepare(T* scratch) const {
    std::fill_n(scratch, padded_.size() + (direct_ ? size_ : 0), padded_.empty());
  }

  // Writes lines of `out`, the results of all planes.
  void run(int64_t task, const T* planes, T* out, T* scratch) const {
    const int64_t first = task / padded_.bands() * padded_.slices();
    const int64_t h = task % padded_.bands() * padded_.lines();
    const SliceBand band{first, std::min(padded_.slices(), slices_ - first), h,
                         std::min(padded_.lines(), w_.output[1] - h)};
    T *above = scratch + padded_.size(), *part = above + size_, *phases = part + size_;
    const int64_t lines = (band.slices - 1) * height_ + band.lines;
    if (direct_) {
      fold_in_place(planes, band, above);
    } else {
      fold_above(planes, band, scratch, above, part);
    }
    if (w_.stride[2] > 1) separate(above, lines, phases);
    const T* line = phases + size_;
    fold_lines(w_.stride[2] > 1 ? phases : above, lines, phases + size_, part);
    for (int64_t s = first; s < first + band.slices; ++s, line += height_ * columns_) {
      T* to = out + (s * w_.output[1] + h) * w_.output[2];
      for (int64_t i = 0; i < band.lines; ++i) {
        copy_short_line(line + i * columns_, w_.output[2], to + i * w_.output[2]);
      }
    }
  }

 private:
  static constexpr int64_t kMostTaps = 256;

  void fold_above(const T* planes, const SliceBand& band, T* padded, T* above, T* part) const {
    const int64_t pitch = padded_.pitch(), stride = padded_.height() * pitch;
    const bool joined = height_ == padded_.height();
    const int64_t rows = joined ? 1 : band.slices;
    const int64_t cols = ((joined ? (band.slices - 1) * height_ : 0) + band.lines) * pitch;
    const int64_t steps = (w_.kernel[1] + padded_.taps() - 1) / padded_.taps();
    for (int64_t i = 0; i < w_.kernel[0] * steps; ++i) {
      const int64_t tap = i % steps * padded_.taps();
      const int64_t taps = std::min(padded_.taps(), w_.kernel[1] - tap);
      padded_.load(planes, band, i / steps, tap, padded);
      T* to = i == 0 ? above : part;
      fold_taps({to, height_ * pitch, nullptr, nullptr, stride, stride, rows, cols}, taps,
                [&](int64_t t) { return padded + padded_.offset(t); });
      if (i == 0) continue;
      const int64_t own = height_ * pitch;
      fold_({above, own, above, part, own, own, rows, cols});
    }
  }

  // Of wide lines, which are folded where they are: successive results with the same taps at once,
  // by whole vectors, as long as these end within the planes. Columns of the padding stay empty.
  void fold_in_place(const T* planes, const SliceBand& band, T* above) const {
    const int64_t pitch = padded_.pitch(), input = w_.input[1], line = w_.input[2];
    const T* end = planes + slices_ / w_.output[0] * count_of(w_.input);
    const int64_t step = w_.stride[1] * line, width = padded_.width();
    for (int64_t s = 0; s < band.slices; ++s) {
      const int64_t plane = (band.first + s) / w_.output[0];
      const int64_t depth = (band.first + s) % w_.output[0] * w_.stride[0];
      const T* slice = planes + (plane * w_.input[0] + depth) * input * line + padded_.from();
      T* to = above + s * height_ * pitch + padded_.at();
      for (int64_t i = 0, rows; i < band.lines; i += rows, to += rows * pitch) {
        const int64_t start = first_line(band.begin + i);
        const auto [first, last] = taps_at(start);
        rows = 1;
        while (i + rows < band.lines &&
               taps_at(first_line(band.begin + i + rows)) == std::pair(first, last)) {
          ++rows;
        }
        const T* from = slice + (start + first * w_.dilation[1]) * line;
        const T* lowest = from + (rows - 1) * step + (last - first - 1) * w_.dilation[1] * line;
        const bool whole = first < last && end - lowest >= padded_.whole_width();
        const int64_t cols = whole ? padded_.whole_width() : width;
        if (first < last) {
          fold_taps({to, pitch, nullptr, nullptr, step, step, rows, cols}, last - first,
                    [&](int64_t t) { return from + t * w_.dilation[1] * line; });
        }
        const int64_t kept = first < last ? width : 0;
        for (int64_t r = 0; kept < cols && r < rows; ++r) {
          std::fill_n(to + r * pitch + kept, cols - kept, padded_.empty());
        }
      }
    }
  }

  // Of the input, at the first tap of a result's line.
  int64_t first_line(int64_t output) const { return output * w_.stride[1] - w_.pad_begin[1]; }

  // Taps [first, last) above each other from line `start` on that lie inside of the input.
  std::pair<int64_t, int64_t> taps_at(int64_t start) const {
    const int64_t step = w_.dilation[1];
    const auto before = [&](int64_t line) {
      return std::clamp<int64_t>((line - start + step - 1) / step, 0, w_.kernel[1]);
    };
    return {start < 0 ? before(0) : 0, start < w_.input[1] ? before(w_.input[1]) : 0};
  }

  // f.to = ⊕ of at(t) over `taps` taps.
  template <typename At>
  void fold_taps(FoldRows<T> f, int64_t taps, const At& at) const {
    if (taps == 1) {
      for (int64_t r = 0; r < f.rows; ++r)
        std::copy_n(at(0) + r * f.a_stride, f.cols, f.to + r * f.to_stride);
      return;
    }
    f.a = at(0);
    for (int64_t t = 1; t < taps; ++t) {
      f.b = at(t);
      fold_(f);
      f.a = f.to;
      f.a_stride = f.to_stride;
    }
  }

  // [line][column · phases + phase] to [phase][line][column], so that the elements of a tap lie
  // side by side.
  void separate(const T* lines, int64_t count, T* to) const {
    static_assert(std::has_single_bit(sizeof(T)) && sizeof(T) <= 8);
    const int64_t phases = w_.stride[2];
    MoveArgs move;
    move.rows = 1;
    move.columns = count * columns_;  // lines join: their length is a multiple of the phases
    move.column_stride = phases;
    for (int64_t phase = 0; phase < phases; ++phase) {
      move.from = lines + phase;
      move.size = move.columns * phases - phase;
      move.out = to + phase * (size_ / phases);
      kernels().move[std::countr_zero(sizeof(T))](move);
    }
  }

  // Of all lines as one: elements behind a line's results are computed and not used.
  void fold_lines(const T* phases, int64_t count, T* to, T* part) const {
    const int64_t all = (count - 1) * columns_ + w_.output[2];
    for (int64_t begin = 0; begin < w_.kernel[2]; begin += kMostTaps) {
      const int64_t taps = std::min(kMostTaps, w_.kernel[2] - begin);
      T* total = begin == 0 ? to : part;
      fold_taps({total, all, nullptr, nullptr, all, all, 1, all}, taps, [&](int64_t t) {
        const int64_t column = (begin + t) * w_.dilation[2];
        return phases + column % w_.stride[2] * (size_ / w_.stride[2]) + column / w_.stride[2];
      });
      if (begin > 0) fold_({to, all, to, part, all, all, 1, all});
    }
  }

  const Window& w_;
  int64_t slices_;
  PaddedLines<T> padded_;
  Fold fold_;
  int64_t columns_;  // of a line with one remainder
  int64_t height_;   // lines of a slice that are folded
  int64_t size_;
  bool direct_;  // the input's lines are read where they are
};

}  // namespace redfuser::cpu
