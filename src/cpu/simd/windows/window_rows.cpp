#include "cpu/simd/activation.h"
#include "cpu/simd/gemm_kernel.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Taps that are summed before they are added to the result.
constexpr int64_t kTaps = 256;

template <class T, int MR, int NV>
RF_INLINE void add_rows(const T* from, int64_t stride, Vector<T> (*sum)[NV]) {
#pragma GCC unroll 12
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) {
      sum[i][j] += load_vector(from + i * stride + j * VectorOf<T>::kWidth);
    }
  }
}

// The rows that add_rows reads are fetched meanwhile.
template <class T, int MR, int NV>
RF_INLINE void fetch_rows(const T* from, int64_t stride) {
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NV; ++j) __builtin_prefetch(from + i * stride + j * VectorOf<T>::kWidth);
  }
}

// Sums of MR filters at NV vectors of positions: the inputs are vectors, the weights are broadcast
// from rows of `width`. The first taps are added to the bias, others to the result. `residual` may
// be null.
template <class T, int MR, int NV>
void row_block(const WindowArgs& g, int64_t width, int64_t filter, const T* in, const T* residual,
               T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int64_t first = 0; first < g.taps; first += kTaps) {
    const int64_t last = g.taps - first < kTaps ? g.taps : first + kTaps;
    const T* weights = static_cast<const T*>(g.weights) + first * width + filter;
    const T* added =
        last == g.taps && residual != nullptr ? residual + filter * g.out_stride : nullptr;
    if (added != nullptr) fetch_rows<T, MR, NV>(added, g.out_stride);
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
    T* to = out + filter * g.out_stride;
    if (first == 0) {
#pragma GCC unroll 12
      for (int i = 0; i < MR; ++i) {
        const Vector<T> bias = static_cast<const T*>(g.bias)[filter + i] - Vector<T>{};
#pragma GCC unroll 2
        for (int j = 0; j < NV; ++j) sum[i][j] += bias;
      }
    } else {
      add_rows<T, MR, NV>(to, g.out_stride, sum);
    }
    if (added != nullptr) add_rows<T, MR, NV>(added, g.out_stride, sum);
    store_activated<T, MR, NV>(last == g.taps ? g.activation : Activation{}, to, g.out_stride,
                               [&](int i, int j) { return sum[i][j]; });
  }
}

template <class T>
using RowBlockFn = void (*)(const WindowArgs&, int64_t, int64_t, const T*, const T*, T*);

template <class T, int NV, int MR = kBlockRows>
RowBlockFn<T> row_block_for(int64_t filters) {
  if constexpr (MR > 1) {
    if (filters < MR) return row_block_for<T, NV, MR - 1>(filters);
  }
  return row_block<T, MR, NV>;
}

template <class T, int NV>
void sum_filters(const WindowArgs& g, int64_t width, const T* in, int64_t at) {
  const T* residual = static_cast<const T*>(g.residual);
  if (residual != nullptr) residual += at;
  T* out = static_cast<T*>(g.out) + at;
  const int64_t blocks = (g.filters + kBlockRows - 1) / kBlockRows;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t begin = g.filters * b / blocks, end = g.filters * (b + 1) / blocks;
    row_block_for<T, NV>(end - begin)(g, width, begin, in, residual, out);
  }
}

// The last vectors of a line overlap those before.
template <class T>
void window_rows(const WindowArgs& g) {
  constexpr int64_t W = VectorOf<T>::kWidth;
  const int64_t width = (g.filters + W - 1) / W * W;
  for (int64_t line = 0; line < g.lines; ++line) {
    const T* in = static_cast<const T*>(g.in) + line * g.line_step;
    for (int64_t c = 0; c < g.columns;) {
      const bool two = g.columns - c > W && g.columns >= 2 * W;
      const int64_t step = two ? 2 * W : W, at = g.columns - c < step ? g.columns - step : c;
      (two ? sum_filters<T, 2> : sum_filters<T, 1>)(g, width, in + at, line * g.columns + at);
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
