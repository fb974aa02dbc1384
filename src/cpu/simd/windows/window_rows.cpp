#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/windows/activation.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Taps that are summed before they are added to the result.
constexpr int64_t kTaps = 256;

// Sums of MR filters at NV vectors of positions: the inputs are vectors, the weights are broadcast
// from rows of `width`. The first taps are added to the bias, others to the result.
template <class T, int MR, int NV>
void row_block(const WindowArgs& g, int64_t width, int64_t filter, const T* in, T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int64_t first = 0; first < g.taps; first += kTaps) {
    const int64_t last = g.taps - first < kTaps ? g.taps : first + kTaps;
    const T* weights = static_cast<const T*>(g.weights) + first * width + filter;
    Vector<T> sum[MR][NV] = {};
    for (int64_t k = first; k < last; ++k, weights += width) {
      const T* at = in + g.offsets[k];
      Vector<T> row[NV];
#pragma GCC unroll 2
      for (int j = 0; j < NV; ++j) row[j] = load_vector(at + j * W);
#pragma GCC unroll 12
      for (int i = 0; i < MR; ++i) {
        const Vector<T> scale = weights[i] - Vector<T>{};
#pragma GCC unroll 2
        for (int j = 0; j < NV; ++j) sum[i][j] += scale * row[j];
      }
    }
    with_activation<T>(last == g.taps ? g.activation : Activation{}, [&](auto each) {
#pragma GCC unroll 12
      for (int i = 0; i < MR; ++i) {
        const Vector<T> bias = static_cast<const T*>(g.bias)[filter + i] - Vector<T>{};
#pragma GCC unroll 2
        for (int j = 0; j < NV; ++j) {
          T* to = out + (filter + i) * g.out_stride + j * W;
          store_vector(to, each(sum[i][j] + (first == 0 ? bias : load_vector(to))));
        }
      }
    });
  }
}

template <class T>
using RowBlockFn = void (*)(const WindowArgs&, int64_t, int64_t, const T*, T*);

template <class T, int NV, int MR = kBlockRows>
RowBlockFn<T> row_block_for(int64_t filters) {
  if constexpr (MR > 1) {
    if (filters < MR) return row_block_for<T, NV, MR - 1>(filters);
  }
  return row_block<T, MR, NV>;
}

template <class T, int NV>
void sum_filters(const WindowArgs& g, int64_t width, const T* in, T* out) {
  const int64_t blocks = (g.filters + kBlockRows - 1) / kBlockRows;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = g.filters * b / blocks, end = g.filters * (b + 1) / blocks;
    row_block_for<T, NV>(end - begin)(g, width, begin, in, out);
  }
}

// The last vectors of a line overlap those before.
template <class T>
void window_rows(const WindowArgs& g) {
  constexpr int64_t W = VectorOf<T>::kWidth;
  const int64_t width = (g.filters + W - 1) / W * W;
  for (int64_t line = 0; line < g.lines; ++line) {
    const T* in = static_cast<const T*>(g.in) + line * g.line_step;
    T* out = static_cast<T*>(g.out) + line * g.columns;
    for (int64_t c = 0; c < g.columns;) {
      const bool two = g.columns - c > W && g.columns >= 2 * W;
      const int64_t step = two ? 2 * W : W, at = g.columns - c < step ? g.columns - step : c;
      (two ? sum_filters<T, 2> : sum_filters<T, 1>)(g, width, in + at, out + at);
      c = at + step;
    }
  }
}

}  // namespace

void add_window_rows(KernelTable& table) {
  table.window_rows_f32 = window_rows<float>;
  table.window_rows_f64 = window_rows<double>;
}

}  // namespace redfuser::cpu::RF_ISA
