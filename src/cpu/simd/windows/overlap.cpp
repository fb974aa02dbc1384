#include "cpu/simd/windows/overlap.h"

#include "cpu/simd/gemm_pack.h"

namespace redfuser::cpu::RF_ISA {
namespace {

template <class T>
struct LaneNumbers {
  static constexpr int W = VectorOf<T>::kWidth;
  using Lane = typename IntegerOf<sizeof(T)>::Type;
  typedef Lane Type __attribute__((vector_size(RF_VECTOR_BYTES)));
  Lane values[W];
  constexpr LaneNumbers() : values() {
    for (int l = 0; l < W; ++l) values[l] = l;
  }
};

// Elements at, at + 1, ... of a line, 0 outside of its `width`.
template <class T>
RF_INLINE Vector<T> load_inside(const T* line, int64_t at, int64_t width) {
  constexpr int W = VectorOf<T>::kWidth;
  if (at <= -W || at >= width) return Vector<T>{};
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const uint32_t after = width - at < W ? (1u << (width - at)) - 1 : 0xffffu;
    const uint32_t before = at < 0 ? (1u << -at) - 1 : 0;
    const auto mask = static_cast<__mmask16>(after & ~before);
    return reinterpret_cast<Vector<T>>(_mm512_maskz_loadu_epi32(mask, line + at));
  }
#endif
  static constexpr LaneNumbers<T> kLanes;
  using Lane = typename LaneNumbers<T>::Lane;
  const Vector<T> v = load_vector(line + at);
  const auto lanes = load_vector(kLanes.values);
  const int64_t last = width - at < W ? width - at : W, first = at < 0 ? -at : 0;
  const auto inside = (lanes >= static_cast<Lane>(first)) & (lanes < static_cast<Lane>(last));
  return inside ? v : Vector<T>{};
}

// sum[i] += what the taps of phase `phase` + i contribute to a vector of positions from q on.
template <class T, int P, bool kWeighted, bool kInside>
RF_INLINE void add_line(const OverlapArgs& g, const T* in, const T* weights, int64_t phase,
                        int64_t q, Vector<T>* sum) {
  int64_t k = phase == 0 ? 0 : g.phase_ends[phase - 1];
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) {
    for (const int64_t end = g.phase_ends[phase + i]; k < end; ++k) {
      const OverlapTap& tap = g.taps[k];
      const int64_t at = q - tap.shift;
      const Vector<T> v =
          kInside ? load_vector(in + tap.in + at) : load_inside(in + tap.in, at, g.width);
      sum[i] += kWeighted ? v * weights[tap.weight] : v;
    }
  }
}

template <class T, int P>
RF_INLINE void sum_phases(const OverlapArgs& g, const OverlapLine* from, const OverlapLine* to,
                          const T* in, const T* weights, T bias, int64_t phase, int64_t q,
                          bool inside, Vector<T>* sum) {
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) sum[i] = bias - Vector<T>{};
  for (; from < to; ++from) {
    const T* line = in + from->in;
    if (weights != nullptr) {
      const T* own = weights + from->weights;
      inside ? add_line<T, P, true, true>(g, line, own, phase, q, sum)
             : add_line<T, P, true, false>(g, line, own, phase, q, sum);
    } else {
      inside ? add_line<T, P, false, true>(g, line, nullptr, phase, q, sum)
             : add_line<T, P, false, false>(g, line, nullptr, phase, q, sum);
    }
  }
}

#if defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__)
// Of vector `part` of P interleaved ones: the lanes among the P vectors side by side.
template <class T, int P>
struct InterleavedLanes {
  static constexpr int W = VectorOf<T>::kWidth;
  typename LaneNumbers<T>::Lane values[P][W];
  constexpr InterleavedLanes() : values() {
    for (int part = 0; part < P; ++part) {
      for (int l = 0; l < W; ++l) {
        const int at = part * W + l;
        values[part][l] = static_cast<typename LaneNumbers<T>::Lane>(at % P * W + at / P);
      }
    }
  }
};

// out[part] = elements part · W, part · W + 1, ... of which q · P + p is v[p][q].
template <class T, int P>
RF_INLINE void interleave(const Vector<T>* v, Vector<T>* out) {
  constexpr int W = VectorOf<T>::kWidth;
  static constexpr InterleavedLanes<T, P> kLanes;
#pragma GCC unroll 8
  for (int part = 0; part < P; ++part) {
    const auto lanes = load_vector(kLanes.values[part]);
    auto result = __builtin_shuffle(v[0], v[P > 1 ? 1 : 0], lanes);
#pragma GCC unroll 4
    for (int i = 2; i < P; i += 2) {
      const auto next = __builtin_shuffle(v[i], v[i + 1 < P ? i + 1 : i], lanes);
      result = lanes < static_cast<typename LaneNumbers<T>::Lane>(i * W) ? result : next;
    }
    out[part] = result;
  }
}
#else
template <class T, int P>
RF_INLINE void interleave(const Vector<T>* v, Vector<T>* out) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int p = 0; p < P; ++p)
    for (int q = 0; q < W; ++q) out[(q * P + p) / W][(q * P + p) % W] = v[p][q];
}
#endif

// A line of P phases.
template <class T, int P>
void overlap_line(const OverlapArgs& g, const OverlapLine* from, const OverlapLine* to, const T* in,
                  const T* weights, T bias, int64_t low, int64_t high, T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int64_t q = 0; q * P < g.columns; q += W) {
    Vector<T> sum[P];
    const bool inside = q >= low && q + W <= high;
    sum_phases<T, P>(g, from, to, in, weights, bias, 0, q, inside, sum);
    Vector<T> part[P];
    interleave<T, P>(sum, part);
    T* to = out + q * P;
    const int64_t left = g.columns - q * P;
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      if (left >= (i + 1) * W) {
        store_vector(to + i * W, part[i]);
      } else if (left > i * W) {
        store_part(to + i * W, part[i], left - i * W);
      }
    }
  }
}

// A line of more phases than registers hold at once.
template <class T>
void overlap_line_of_many(const OverlapArgs& g, const OverlapLine* from, const OverlapLine* to,
                          const T* in, const T* weights, T bias, int64_t low, int64_t high,
                          T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int64_t q = 0; q * g.phases < g.columns; q += W) {
    const bool inside = q >= low && q + W <= high;
    for (int64_t p = 0; p < g.phases; ++p) {
      Vector<T> sum;
      sum_phases<T, 1>(g, from, to, in, weights, bias, p, q, inside, &sum);
      for (int l = 0; l < W && (q + l) * g.phases + p < g.columns; ++l) {
        out[(q + l) * g.phases + p] = sum[l];
      }
    }
  }
}

template <class T>
using OverlapLineFn = void (*)(const OverlapArgs&, const OverlapLine*, const OverlapLine*, const T*,
                               const T*, T, int64_t, int64_t, T*);

template <class T>
OverlapLineFn<T> line_of(int64_t phases) {
  switch (phases) {
    case 1:
      return overlap_line<T, 1>;
    case 2:
      return overlap_line<T, 2>;
    case 3:
      return overlap_line<T, 3>;
    case 4:
      return overlap_line<T, 4>;
    case 5:
      return overlap_line<T, 5>;
    case 6:
      return overlap_line<T, 6>;
    case 8:
      return overlap_line<T, 8>;
    default:
      return overlap_line_of_many<T>;
  }
}

template <class T>
void overlap(const OverlapArgs& g) {
  // Positions [low, high) that every tap reaches.
  int64_t low = 0, high = g.width;
  for (int64_t k = 0; k < g.phase_ends[g.phases - 1]; ++k) {
    const int64_t shift = g.taps[k].shift;
    low = shift > low ? shift : low;
    high = g.width + shift < high ? g.width + shift : high;
  }
  const OverlapLineFn<T> sum_line = line_of<T>(g.phases);
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    const T* in = static_cast<const T*>(g.in) + plane * g.in_stride;
    const T* weights = g.weights == nullptr
                           ? nullptr
                           : static_cast<const T*>(g.weights) + plane * g.weights_stride;
    const T bias = g.bias == nullptr ? T{} : static_cast<const T*>(g.bias)[plane];
    T* out = static_cast<T*>(g.out) + plane * g.out_stride;
    const OverlapLine* from = g.sources;
    for (int64_t line = 0; line < g.lines; ++line, out += g.columns) {
      const OverlapLine* to = g.sources + g.line_ends[line];
      sum_line(g, from, to, in, weights, bias, low, high, out);
      from = to;
    }
  }
}

}  // namespace

void add_overlap(KernelTable& table) {
  table.overlap_f32 = overlap<float>;
  table.overlap_f64 = overlap<double>;
}

}  // namespace redfuser::cpu::RF_ISA
