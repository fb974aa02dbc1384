// Sums of lines that overlap: the second half of a transposed convolution.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// A line of the input under one tap of the dimensions before the last, and where the weights of the
// last dimension's taps begin.
struct OverlapLine {
  int64_t in, weights;
};
// A tap of the last dimension: its lines are `in` elements after those of the OverlapLine, and
// element i of them falls on position i + shift of the tap's phase.
struct OverlapTap {
  int64_t in, weight, shift;
};

// Position q of phase p is column q · phases + p of a line of the output:
// out[plane, line, q · phases + p] = bias[plane] + Σ over the line's OverlapLines l and the taps t
// of phase p of in[plane][l.in + t.in + q - t.shift] · weights[plane][l.weights + t.weight], of
// elements 0 to width - 1 of the input's lines. Elements of a vector before and after each line may
// be read, whatever they are.
struct OverlapArgs {
  int64_t planes = 0, lines = 0, columns = 0, width = 0, phases = 1;
  const int64_t* line_ends = nullptr;  // of each line, in `sources`, where the next one's begin
  const OverlapLine* sources = nullptr;
  const int64_t* phase_ends = nullptr;  // likewise, of each phase in `taps`
  const OverlapTap* taps = nullptr;
  const void* in = nullptr;
  int64_t in_stride = 0;          // between planes
  const void* weights = nullptr;  // null: 1
  int64_t weights_stride = 0;
  const void* bias = nullptr;  // null: 0
  void* out = nullptr;         // lines of `columns` elements
  int64_t out_stride = 0;
};

}  // namespace redfuser::cpu
