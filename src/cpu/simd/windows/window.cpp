#include "cpu/simd/activation.h"
#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/transposed.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Taps that are summed before they are added to the tile: their weights stay in the first-level
// cache.
constexpr int64_t kTaps = 128;

// Weights of `taps` rows of NV vectors against MR positions `step` apart: the weights are vectors,
// the inputs are broadcast. Groups of three positions keep the addresses in few registers. With
// `kFetch`, as many weights after these are fetched in the meantime.
template <class T, int MR, int NV, bool kUnit, bool kFetch>
RF_INLINE void window_block(int64_t taps, const int64_t* offsets, const T* in, int64_t step,
                            const T* weights, const T* before, int64_t before_stride, T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  Vector<T> sum[MR][NV] = {};
  const int64_t ahead = taps * NV * W;
  for (int64_t k = 0; k < taps; ++k) {
    const T* at = in + offsets[k];
    Vector<T> row[NV];
#pragma GCC unroll 3
    for (int j = 0; j < NV; ++j) row[j] = load_vector(weights + j * W);
    if constexpr (kFetch) __builtin_prefetch(weights + ahead, 0, 2);
#pragma GCC unroll 24
    for (int i = 0; i < MR; ++i) {
      if (!kUnit && i > 0 && i % 3 == 0) at += 3 * step;
      const Vector<T> scale = (kUnit ? at[i] : at[i % 3 * step]) - Vector<T>{};
#pragma GCC unroll 3
      for (int j = 0; j < NV; ++j) sum[i][j] += scale * row[j];
    }
    weights += NV * W;
  }
#pragma GCC unroll 24
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < NV; ++j) {
      const Vector<T> first = load_vector(before + i * before_stride + j * W);
      store_vector(out + (i * NV + j) * W, first + sum[i][j]);
    }
}

template <class T>
using WindowBlockFn = void (*)(int64_t, const int64_t*, const T*, int64_t, const T*, const T*,
                               int64_t, T*);

template <class T, int MR, int NV, bool kUnit, bool kFetch>
void window_block_of(int64_t taps, const int64_t* offsets, const T* in, int64_t step,
                     const T* weights, const T* before, int64_t before_stride, T* out) {
  window_block<T, MR, NV, kUnit, kFetch>(taps, offsets, in, step, weights, before, before_stride,
                                         out);
}

// Positions of a block: as many registers of sums for any vectors of filters.
template <int NV>
inline constexpr int kPositions = kBlockRows * 2 / NV;

template <class T, int NV, bool kUnit, bool kFetch, int MR = kPositions<NV>>
WindowBlockFn<T> window_block_for(int64_t positions) {
  if constexpr (MR > 1) {
    if (positions < MR) return window_block_for<T, NV, kUnit, kFetch, MR - 1>(positions);
  }
  return window_block_of<T, MR, NV, kUnit, kFetch>;
}

// The sums of some taps at every position of the tile, added to `before`.
template <class T, int NV, bool kUnit>
void sum_taps(const WindowArgs& g, int64_t first, int64_t taps, const T* before,
              int64_t before_stride, T* tile) {
  constexpr int W = VectorOf<T>::kWidth;
  const T* weights = static_cast<const T*>(g.weights) + first * NV * W;
  const int64_t blocks = (g.columns + kPositions<NV> - 1) / kPositions<NV>;
  for (int64_t line = 0; line < g.lines; ++line) {
    const T* in = static_cast<const T*>(g.in) + line * g.line_step;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t begin = g.columns * b / blocks, end = g.columns * (b + 1) / blocks;
      const int64_t at = line * g.columns + begin;
      const auto block = at == 0 ? window_block_for<T, NV, kUnit, true>(end - begin)
                                 : window_block_for<T, NV, kUnit, false>(end - begin);
      block(taps, g.offsets + first, in + begin * g.step, g.step, weights,
            before + at * before_stride, before_stride, tile + at * NV * W);
    }
  }
}

template <class T, int NV>
void sum_window(const WindowArgs& g) {
  T* tile = static_cast<T*>(g.tile);
  for (int64_t k = 0; k < g.taps; k += kTaps) {
    const int64_t taps = g.taps - k < kTaps ? g.taps - k : kTaps;
    const T* before = k == 0 ? static_cast<const T*>(g.bias) : tile;
    const int64_t stride = k == 0 ? 0 : NV * VectorOf<T>::kWidth;
    (g.step == 1 ? sum_taps<T, NV, true> : sum_taps<T, NV, false>)(g, k, taps, before, stride,
                                                                   tile);
  }
}

// out[f, p] = tile[p, f]
template <class T>
void finish_window(const WindowArgs& g, int64_t width) {
  const TransposedTile<T> tile{static_cast<const T*>(g.tile),
                               width,
                               g.lines * g.columns,
                               g.filters,
                               static_cast<T*>(g.out),
                               g.out_stride,
                               static_cast<const T*>(g.residual)};
  with_activation<T>(g.activation, [&](auto each) { transpose_tile(tile, each); });
}

template <class T>
void window(const WindowArgs& g) {
  constexpr int W = VectorOf<T>::kWidth;
  static_assert(W * sizeof(T) <= kWindowVectorBytes);
  if (g.filters > 2 * W) {
    sum_window<T, 3>(g);
    finish_window<T>(g, 3 * W);
  } else if (g.filters > W) {
    sum_window<T, 2>(g);
    finish_window<T>(g, 2 * W);
  } else {
    sum_window<T, 1>(g);
    finish_window<T>(g, W);
  }
}

}  // namespace

void add_window(KernelTable& table) {
  table.window_f32 = window<float>;
  table.window_f64 = window<double>;
  table.window_lanes_f32 = VectorOf<float>::kWidth;
}

}  // namespace redfuser::cpu::RF_ISA
