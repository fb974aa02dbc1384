#include "cpu/opaque/image/integers/integer_lines.h"

#include <algorithm>
#include <cstring>

namespace redfuser::cpu {
namespace {

constexpr int64_t kLine = 64, kWord = 4;  // bytes of a cache line and of a group

// The furthest tap's place within its phase, along dimension i.
int64_t reach(const Window& w, size_t i) { return (w.kernel[i] - 1) * w.dilation[i] / w.stride[i]; }

int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

}  // namespace

int64_t InterleavedLines::pitch(const Window& window) {
  return window.output[2] + reach(window, 2);
}

InterleavedLines::InterleavedLines(const IntegerKernels& kernels, const Window& w,
                                   const ChannelGroups& groups, int64_t lines)
    : kernels_(kernels),
      window_(w),
      groups_(groups),
      rows_(lines + reach(w, 1)),
      pitch_(pitch(w)),
      phases_(w.stride[1] * w.stride[2]),
      words_(groups.size / kernels.group()) {
  // An odd number of cache lines, so that the planes of all channels do not meet in few cache sets.
  plane_ = (ceil_div(rows_ * pitch_ * kWord, kLine) | 1) * kLine / kWord;
  used_.resize(static_cast<size_t>(phases_));
  for (int64_t y = 0; y < w.kernel[1]; ++y) {
    for (int64_t x = 0; x < w.kernel[2]; ++x) {
      const int64_t down = y * w.dilation[1], right = x * w.dilation[2];
      const int64_t phase = down % w.stride[1] * w.stride[2] + right % w.stride[2];
      taps_.push_back({phase, down / w.stride[1], right / w.stride[2]});
      used_[static_cast<size_t>(phase)] = true;
    }
  }
  for (int64_t group = 0; group < groups.count(); ++group) {
    for (const Tap& tap : taps_) {
      for (int64_t word = group * words_; word < (group + 1) * words_; ++word) {
        const int64_t plane = word * phases_ + tap.phase;
        offsets_.push_back((plane * plane_ + tap.row * pitch_ + tap.column) * kWord);
      }
    }
  }
}

int64_t InterleavedLines::bytes() const {
  return groups_.count() * words_ * phases_ * plane_ * kWord + kernels_.columns * kWord;
}

void InterleavedLines::fill(const uint8_t* image, int64_t first, int64_t lines, uint8_t padding,
                            uint8_t flip, void* strip, int32_t* sums, int32_t* terms) const {
  if (sums != nullptr) std::fill_n(sums, plane_elements(), 0);
  // Words of channels that fill up the last group stay as they are: their weights are 0.
  const int64_t group = kernels_.group();
  for (int64_t word = 0; word * group < groups_.channels; ++word) {
    IntegerInterleaveArgs args;
    args.in = image + word * group * window_.input[1] * window_.input[2];
    args.channel_stride = window_.input[1] * window_.input[2];
    args.channels = std::min(group, groups_.channels - word * group);
    args.flip = flip;
    for (int64_t phase = 0; phase < phases_; ++phase) {
      if (!used_[static_cast<size_t>(phase)]) continue;
      char* plane = static_cast<char*>(strip) + (word * phases_ + phase) * plane_ * kWord;
      fill_phase(args, phase, first, lines, padding, plane,
                 sums == nullptr ? nullptr : sums + phase * plane_);
    }
  }
  if (sums == nullptr) return;
  const int64_t positions = (lines - 1) * pitch_ + window_.output[2];
  std::fill_n(terms, positions, 0);
  for (const Tap& tap : taps_) {
    const int32_t* from = sums + tap.phase * plane_ + tap.row * pitch_ + tap.column;
    for (int64_t p = 0; p < positions; ++p) terms[p] += from[p];
  }
}

// The lines of one phase of a word of channels.
void InterleavedLines::fill_phase(IntegerInterleaveArgs args, int64_t phase, int64_t first,
                                  int64_t lines, uint8_t padding, char* plane,
                                  int32_t* sums) const {
  const Window& w = window_;
  const uint8_t* image = args.in;
  const int64_t down = phase / w.stride[2], right = phase % w.stride[2];
  // Columns [begin, end) of a line lie in the image.
  const auto column = [&](int64_t x) {
    return std::min(ceil_div(x + w.pad_begin[2] - right, w.stride[2]), pitch_);
  };
  const int64_t begin = column(0), end = std::max(begin, column(w.input[2]));
  const auto part = [&](int64_t row, int64_t from, int64_t count, const uint8_t* in, int64_t step) {
    if (count <= 0) return;
    IntegerInterleaveArgs a = args;
    const uint8_t pad[4] = {padding, padding, padding, padding};
    if (in == nullptr) a.channel_stride = 1;
    a.in = in == nullptr ? pad : in;
    a.step = step;
    a.count = count;
    a.out = plane + (row * pitch_ + from) * kWord;
    a.sums = sums == nullptr ? nullptr : sums + row * pitch_ + from;
    kernels_.interleave(a);
  };
  const int64_t rows = lines + reach(w, 1);
  // Vectors of the last positions read on. Planes are filled in order, so that what this clears of
  // the next one is written later.
  std::memset(plane + rows * pitch_ * kWord, 0, static_cast<size_t>(kernels_.columns * kWord));
  const bool whole = w.stride[1] == 1 && w.stride[2] == 1 && w.pad_begin[1] == 0 &&
                     w.pad_begin[2] == 0 && pitch_ == w.input[2] && first + rows <= w.input[1];
  if (whole) return part(0, 0, rows * pitch_, image + first * w.input[2], 1);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t y = (first + row) * w.stride[1] + down - w.pad_begin[1];
    const bool inside = y >= 0 && y < w.input[1] && begin < end;
    part(row, 0, inside ? begin : pitch_, nullptr, 0);
    if (!inside) continue;
    const int64_t x = begin * w.stride[2] + right - w.pad_begin[2];
    part(row, begin, end - begin, image + y * w.input[2] + x, w.stride[2]);
    part(row, end, pitch_ - end, nullptr, 0);
  }
}

}  // namespace redfuser::cpu
