// The layout of a channel for kernels that slide over it line by line.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpu/opaque/image/im2col.h"

namespace redfuser::cpu {

// A channel with its padding, every line split by column modulo the stride, so that each tap reads
// consecutive elements: [depth][height][phase][columns]. UserError for a channel beyond the memory
// limit.
struct PaddedPlane {
  int64_t depth, height, phases, columns;
  std::vector<int64_t> offsets;  // of each tap

  explicit PaddedPlane(const Window& w) : phases(w.stride[2]) {
    auto span = [&](int i) {
      return (w.output[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    };
    depth = span(0);
    height = span(1);
    columns = (span(2) + phases - 1) / phases;
    require_memory(element_count({depth, height, phases, columns}), 1);
    for_each_tap(w, [&](int64_t, const Size3& tap) {
      int64_t column = tap[2] + w.pad_begin[2];
      int64_t line = (tap[0] + w.pad_begin[0]) * height + tap[1] + w.pad_begin[1];
      offsets.push_back((line * phases + column % phases) * columns + column / phases);
    });
  }

  int64_t line_size() const { return phases * columns; }
  int64_t size() const { return depth * height * line_size(); }

  // The first element that output line (d, h) reads, to which `offsets` are added.
  int64_t base(const Window& w, int64_t d, int64_t h) const {
    return (d * w.stride[0] * height + h * w.stride[1]) * line_size();
  }

  // Copies the input; elements outside of it keep their values.
  template <typename T>
  void fill(const Window& w, const T* plane, T* to) const {
    for (int64_t d = 0; d < w.input[0]; ++d) {
      for (int64_t h = 0; h < w.input[1]; ++h) {
        int64_t to_d = d + w.pad_begin[0], to_h = h + w.pad_begin[1];
        if (to_d < 0 || to_d >= depth || to_h < 0 || to_h >= height) continue;
        fill_line(w, plane + (d * w.input[1] + h) * w.input[2],
                  to + (to_d * height + to_h) * line_size());
      }
    }
  }

  template <typename T>
  void fill_line(const Window& w, const T* source, T* line) const {
    for (int64_t phase = 0; phase < phases; ++phase) {
      int64_t shift =
          phase - w.pad_begin[2];  // position c of the phase is input c * phases + shift
      int64_t first = shift >= 0 ? 0 : (-shift + phases - 1) / phases;
      int64_t inside = (w.input[2] - shift + phases - 1) / phases;
      int64_t last = std::min(columns, inside);
      T* target = line + phase * columns;
      for (int64_t c = first; c < last; ++c) target[c] = source[c * phases + shift];
    }
  }
};

}  // namespace redfuser::cpu
