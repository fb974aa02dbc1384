// Sums and maxima of sliding windows.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// The lines of the input that windows of one line of results cover: `slices` times `lines` of them,
// the first one at element `first` of a plane.
struct PoolLines {
  int64_t first, slices, lines;
};

// out[plane, line, c] = ⊕ over the taps t and the lines l of `covered`[line] of in[plane][l + c ·
// stride + t · dilation - pad], of elements 0 to width - 1 of the input's lines; divided by
// divisors[line, c] where there are divisors.
struct PoolArgs {
  bool maximum = false;  // else a sum; windows without elements are -infinity and 0
  int64_t planes = 0, lines = 0, columns = 0, width = 0;
  int64_t taps = 1, stride = 1, dilation = 1, pad = 0;
  const PoolLines* covered = nullptr;
  int64_t slice_step = 0, line_step = 0;  // between the lines that a window covers
  const void* in = nullptr;
  int64_t in_stride = 0;  // between planes
  int64_t readable = 0;   // elements from `in` on
  const void* divisors = nullptr;
  void* out = nullptr;
  int64_t out_stride = 0;
  void* scratch = nullptr;  // pool_scratch elements
};

// Output columns at once, and lines.
inline constexpr int64_t kPoolPositions = 2048, kPoolLines = 4, kPoolSlack = 64;
inline int64_t pool_columns(int64_t stride) {
  return stride < kPoolPositions ? kPoolPositions / stride : 1;
}
inline int64_t pool_pitch(const PoolArgs& g) {
  const int64_t most = pool_columns(g.stride);
  const int64_t columns = g.columns < most ? g.columns : most;
  return (columns - 1) * g.stride + (g.taps - 1) * g.dilation + 2 * kPoolSlack;
}
inline int64_t pool_scratch(const PoolArgs& g) { return (kPoolLines + 1) * pool_pitch(g); }

}  // namespace redfuser::cpu
