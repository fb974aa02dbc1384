#include "cpu/convolution/strips.h"

#include <algorithm>

#include "cpu/opaque/image/im2col.h"
#include "cpu/steps/step_kernel.h"

namespace redfuser::cpu {

int64_t span_of(const Window& w, size_t i, int64_t outputs) {
  return (outputs - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
}

Strips::Strips(const Window& window, int64_t lines, int64_t columns) : window_(window) {
  const Size3& out = window.output;
  across_ = ceil_div(out[2], std::min(columns, out[2]));
  columns_ = ceil_div(out[2], across_);
  down_ = across_ > 1 ? out[1] : ceil_div(out[1], std::min(lines, out[1]));
  lines_ = ceil_div(out[1], down_);
}

Strip Strips::at(int64_t number) const {
  const Size3& out = window_.output;
  const int64_t across = number % across_, down = number / across_ % down_;
  Strip strip{number / across_ / down_, out[1] * down / down_, 0, out[2] * across / across_, 0};
  strip.lines = out[1] * (down + 1) / down_ - strip.line;
  strip.columns = out[2] * (across + 1) / across_ - strip.column;
  return strip;
}

bool reads_within(const Window& w) {
  bool within = true;
  for (size_t i = 0; i < 3; ++i) {
    within &= w.pad_begin[i] == 0 && span_of(w, i, w.output[i]) <= w.input[i];
  }
  return within;
}

StripInputs::StripInputs(const Window& w, int64_t channels, const Strips& strips, bool copied)
    : window_(w), channels_(channels), copied_(copied) {
  const Size3 strip{span_of(w, 0, 1), span_of(w, 1, strips.lines()),
                    span_of(w, 2, strips.columns())};
  size_ = copied ? strip : w.input;
  read_ = count_of(strip);
  plane_ = count_of(size_);
  line_step_ = w.stride[1] * size_[2];
  for (int64_t channel = 0; channel < channels; ++channel) {
    for_each_tap(w, [&](int64_t, const Size3& tap) {
      Size3 at;
      for (size_t i = 0; i < 3; ++i) at[i] = tap[i] + w.pad_begin[i];
      offsets_.push_back(channel * plane_ + (at[0] * size_[1] + at[1]) * size_[2] + at[2]);
    });
  }
}

int64_t StripInputs::lines_apart() const {
  constexpr int64_t kPage = 1024;  // elements
  return plane_ < kPage ? 0 : channels_ * window_.kernel[0];
}

int64_t StripInputs::base(const Strip& strip) const {
  const Window& w = window_;
  return (strip.slice * w.stride[0] * size_[1] + strip.line * w.stride[1]) * size_[2] +
         strip.column * w.stride[2];
}

template <typename T>
void StripInputs::copy(const Strip& strip, const T* image, int64_t first, int64_t last,
                       T* to) const {
  const Window& w = window_;
  const int64_t begin = strip.column * w.stride[2] - w.pad_begin[2];
  const int64_t columns = span_of(w, 2, strip.columns), rows = span_of(w, 1, strip.lines);
  const int64_t left = std::clamp<int64_t>(-begin, 0, columns);
  const int64_t right = std::clamp<int64_t>(w.input[2] - begin, left, columns);
  for (int64_t channel = first; channel < last; ++channel) {
    const T* plane = image + channel * count_of(w.input);
    for (int64_t i = 0; i < size_[0]; ++i) {
      const int64_t d = strip.slice * w.stride[0] - w.pad_begin[0] + i;
      for (int64_t j = 0; j < rows; ++j) {
        const int64_t h = strip.line * w.stride[1] - w.pad_begin[1] + j;
        T* line = to + channel * plane_ + (i * size_[1] + j) * size_[2];
        if (d < 0 || d >= w.input[0] || h < 0 || h >= w.input[1]) {
          std::fill_n(line, columns, T(0));
          continue;
        }
        const T* source = plane + (d * w.input[1] + h) * w.input[2];
        std::fill_n(line, left, T(0));
        if (left < right) std::copy_n(source + begin + left, right - left, line + left);
        std::fill(line + right, line + columns, T(0));
      }
    }
  }
}

template void StripInputs::copy<float>(const Strip&, const float*, int64_t, int64_t, float*) const;
template void StripInputs::copy<double>(const Strip&, const double*, int64_t, int64_t,
                                        double*) const;

}  // namespace redfuser::cpu
