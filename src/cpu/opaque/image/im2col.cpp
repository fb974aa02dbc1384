#include "cpu/opaque/image/im2col.h"

#include <algorithm>

namespace redfuser::cpu {
namespace {

struct Range {
  int64_t begin, end;
};

// The output positions in [begin, end) whose input position o * stride + offset is in [0, size).
Range valid_outputs(int64_t begin, int64_t end, int64_t size, int64_t stride, int64_t offset) {
  int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  int64_t last = size - 1 - offset >= 0 ? (size - 1 - offset) / stride + 1 : 0;
  first = std::clamp(first, begin, end);
  return {first, std::clamp(last, first, end)};
}

// The inputs of one tap along one output line, for columns [begin, end). `source` is the input
// line.
template <typename T>
void gather_line(const Window& w, const T* source, int64_t offset, int64_t begin, int64_t end,
                 T* target, T padding) {
  int64_t stride = w.stride[2];
  Range valid = valid_outputs(begin, end, w.input[2], stride, offset);
  target = std::fill_n(target, valid.begin - begin, padding);
  if (stride == 1) {
    if (valid.begin < valid.end) {
      target = std::copy(source + valid.begin + offset, source + valid.end + offset, target);
    }
  } else {
    for (int64_t o = valid.begin; o < valid.end; ++o) *target++ = source[o * stride + offset];
  }
  std::fill_n(target, end - valid.end, padding);
}

}  // namespace

template <typename T>
void gather_columns(const Window& w, const T* plane, int64_t begin, int64_t end, T* columns,
                    int64_t ld, T padding) {
  for_each_tap(w, [&](int64_t index, const Size3& tap) {
    T* row = columns + index * ld;
    int64_t line = begin / w.output[2], column = begin % w.output[2];
    for (int64_t pixel = begin; pixel < end; ++line, column = 0) {
      int64_t length = std::min(w.output[2] - column, end - pixel);
      int64_t d = line / w.output[1] * w.stride[0] + tap[0];
      int64_t h = line % w.output[1] * w.stride[1] + tap[1];
      if (d >= 0 && d < w.input[0] && h >= 0 && h < w.input[1]) {
        gather_line(w, plane + (d * w.input[1] + h) * w.input[2], tap[2], column, column + length,
                    row, padding);
      } else {
        std::fill_n(row, length, padding);
      }
      row += length;
      pixel += length;
    }
  });
}

template void gather_columns<float>(const Window&, const float*, int64_t, int64_t, float*, int64_t,
                                    float);
template void gather_columns<double>(const Window&, const double*, int64_t, int64_t, double*,
                                     int64_t, double);
template void gather_columns<uint8_t>(const Window&, const uint8_t*, int64_t, int64_t, uint8_t*,
                                      int64_t, uint8_t);

}  // namespace redfuser::cpu
