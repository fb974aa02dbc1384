#include "cpu/simd/activation.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/moves/short_square.h"
#include "cpu/simd/transposed.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Positions whose sums are held in registers together: as many as hide the latency of
// multiply-adds.
#if RF_VECTOR_BYTES == 64
constexpr int kPositions = 8;
#else
constexpr int kPositions = 6;
#endif

// Rows beyond the channels repeat the last one.
template <class T>
void fill_image(const LanesArgs& g) {
  constexpr int W = VectorOf<T>::kWidth;
  const T* in = static_cast<const T*>(g.in);
  T* image = static_cast<T*>(g.image);
  const int64_t last = (g.channels - 1) * g.in_stride;
  for (int64_t p = 0; p < g.inputs; p += W) {
    const int64_t count = g.inputs - p < W ? g.inputs - p : W;
    Vector<T> v[W];
    if (g.channels == W && last + p + W <= g.readable) {
      load_transposed<T>(in + p, g.in_stride, v);
    } else {
      for (int64_t i = 0; i < W; ++i) {
        const int64_t at = (i < g.channels ? i : g.channels - 1) * g.in_stride + p;
        v[i] = at + W <= g.readable ? load_vector(in + at) : load_part(in + at, count);
      }
      transpose_square<T>(v);
    }
    const int32_t* places = g.places + p;
    if (count == W) {
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) store_vector(image + int64_t{places[i]} * W, v[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) store_vector(image + int64_t{places[i]} * W, v[i]);
    }
  }
}

// The same of bytes, by squares of 16 of them.
template <class In>
void fill_image_of(const LanesArgs& g) {
  using Square = ShortSquare<In>;
  constexpr int kSide = Square::kWidth;
  constexpr int64_t W = VectorOf<float>::kWidth;
  static_assert(W <= kSide);
  const In* in = static_cast<const In*>(g.in);
  float* image = static_cast<float*>(g.image);
  In rows[kSide * kSide] = {};
  for (int64_t p = 0; p < g.inputs; p += kSide) {
    const int64_t count = g.inputs - p < kSide ? g.inputs - p : kSide;
    In square[kSide * kSide];
    if (g.channels == kSide && (kSide - 1) * g.in_stride + p + kSide <= g.readable) {
      Square::transpose(in + p, g.in_stride, square, kSide);
    } else {
      for (int64_t i = 0; i < g.channels; ++i) {
        const int64_t at = i * g.in_stride + p, left = g.readable - at;
        if (left >= kSide) {
          __builtin_memcpy(rows + i * kSide, in + at, kSide);
        } else {
          __builtin_memcpy(rows + i * kSide, in + at, static_cast<size_t>(left));
        }
      }
      Square::transpose(rows, kSide, square, kSide);
    }
    for (int64_t i = 0; i < count; ++i) {
      const auto bytes = load_lanes<In>(reinterpret_cast<const char*>(square + i * kSide), 0);
      store_vector(image + int64_t{g.places[p + i]} * W, float_lanes<In>(bytes) - g.zero);
    }
  }
}

template <class T, int NP>
void sum_positions(const LanesArgs& g, const int64_t* positions, const T* weights, const T* bias,
                   T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  const T* image = static_cast<const T*>(g.image);
  const T* from[NP];
  Vector<T> sum[NP];
#pragma GCC unroll 8
  for (int i = 0; i < NP; ++i) from[i] = image + positions[i], sum[i] = load_vector(bias);
  for (int64_t k = 0; k < g.taps; ++k) {
    const int64_t offset = g.offsets[k];
    const Vector<T> weight = load_vector(weights + k * W);
#pragma GCC unroll 8
    for (int i = 0; i < NP; ++i) sum[i] += weight * load_vector(from[i] + offset);
  }
#pragma GCC unroll 8
  for (int i = 0; i < NP; ++i) store_vector(out + i * W, sum[i]);
}

// The same of positions side by side and K taps side by side: each input is loaded once for a line
// of taps.
template <class T, int NP, int K>
void slide_taps(const LanesArgs& g, const int64_t* positions, const T* weights, const T* bias,
                T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  const T* from = static_cast<const T*>(g.image) + positions[0];
  Vector<T> sum[NP];
#pragma GCC unroll 8
  for (int i = 0; i < NP; ++i) sum[i] = load_vector(bias);
  for (int64_t k = 0; k < g.taps; k += K, weights += K * W) {
    const T* at = from + g.offsets[k];
    Vector<T> weight[K];
#pragma GCC unroll 7
    for (int t = 0; t < K; ++t) weight[t] = load_vector(weights + t * W);
#pragma GCC unroll 16
    for (int j = 0; j < NP + K - 1; ++j) {
      const Vector<T> x = load_vector(at + j * W);
#pragma GCC unroll 7
      for (int t = 0; t < K; ++t) {
        if (j >= t && j - t < NP) sum[j - t] += weight[t] * x;
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < NP; ++i) store_vector(out + i * W, sum[i]);
}

template <class T>
using SumPositionsFn = void (*)(const LanesArgs&, const int64_t*, const T*, const T*, T*);

// K = 1: of any positions and taps.
template <class T, int K, int NP = kPositions>
SumPositionsFn<T> sum_for(int64_t positions) {
  if constexpr (NP > 1) {
    if (positions < NP) return sum_for<T, K, NP - 1>(positions);
  }
  if constexpr (K == 1) {
    return sum_positions<T, NP>;
  } else {
    return slide_taps<T, NP, K>;
  }
}

// Outputs [first, last), whose sums go to `tile`.
template <class T, int K>
void sum_outputs(const LanesArgs& g, int64_t first, int64_t last, const T* weights, const T* bias,
                 T* tile) {
  constexpr int W = VectorOf<T>::kWidth;
  const int64_t line = K == 1 ? last - first : g.line_outputs;
  const int64_t blocks = (line + kPositions - 1) / kPositions, most = (line + blocks - 1) / blocks;
  const auto sum = sum_for<T, K>(most);
  int64_t left = K == 1 ? line : line - first % line;
  for (int64_t p = first; p < last;) {
    if (left == 0) left = line;
    int64_t count = left < last - p ? left : last - p;
    left -= count;
    for (; count >= most; count -= most, p += most) {
      sum(g, g.positions + p, weights, bias, tile + (p - first) * W);
    }
    if (count == 0) continue;
    sum_for<T, K>(count)(g, g.positions + p, weights, bias, tile + (p - first) * W);
    p += count;
  }
}

template <class T>
using SumOutputsFn = void (*)(const LanesArgs&, int64_t, int64_t, const T*, const T*, T*);

template <class T>
SumOutputsFn<T> sum_outputs_of(int64_t line_taps) {
  switch (line_taps) {
    case 3:
      return sum_outputs<T, 3>;
    case 5:
      return sum_outputs<T, 5>;
    case 7:
      return sum_outputs<T, 7>;
    default:
      return sum_outputs<T, 1>;
  }
}

// The bits of the whole numbers that floats are.
RF_INLINE Vector<float> int_bits(Vector<float> v) {
  return float_of(__builtin_convertvector(v, Vector<int32_t>));
}

template <class T, class In>
void filter_lanes(const LanesArgs& g) {
  constexpr int W = VectorOf<T>::kWidth;
  constexpr bool kBytes = sizeof(In) == 1;
  if constexpr (kBytes) {
    fill_image_of<In>(g);
  } else {
    fill_image<T>(g);
  }
  T* tile = static_cast<T*>(g.tile);
  const auto sum = sum_outputs_of<T>(g.line_taps);
  for (int64_t f = 0; f < g.filters; ++f) {
    const T* weights = static_cast<const T*>(g.weights) + f * g.taps * W;
    const T* bias = static_cast<const T*>(g.bias) + f * W;
    T* out = static_cast<T*>(g.out) + f * g.out_stride;
    const T* residual = static_cast<const T*>(g.residual);
    if (residual != nullptr) residual += f * g.out_stride;
    for (int64_t first = 0; first < g.outputs; first += kLanesTile) {
      const int64_t count = g.outputs - first < kLanesTile ? g.outputs - first : kLanesTile;
      sum(g, first, first + count, weights, bias, tile);
      const TransposedTile<T> sums{tile,
                                   W,
                                   count,
                                   g.channels,
                                   out + first,
                                   g.filters * g.out_stride,
                                   residual == nullptr ? nullptr : residual + first};
      if constexpr (kBytes) {
        transpose_tile(sums, int_bits);
      } else {
        with_activation<T>(g.activation, [&](auto each) { transpose_tile(sums, each); });
      }
    }
  }
}

}  // namespace

void add_lanes(KernelTable& table) {
  table.lanes_f32 = filter_lanes<float, float>;
  table.lanes_f64 = filter_lanes<double, double>;
  table.lanes_u8 = filter_lanes<float, uint8_t>;
  table.lanes_i8 = filter_lanes<float, int8_t>;
}

}  // namespace redfuser::cpu::RF_ISA
