#include "cpu/simd/windows/pool.h"

#include "cpu/simd/gemm_pack.h"

namespace redfuser::cpu::RF_ISA {
namespace {

template <class T>
struct MaximumOf {
  static constexpr T kEmpty = -static_cast<T>(__builtin_inf());
  // NaN if either is NaN.
  static RF_INLINE Vector<T> of(Vector<T> x, Vector<T> y) { return ((x > y) | (x != x)) ? x : y; }
};
template <class T>
struct SumOf {
  static constexpr T kEmpty = 0;
  static RF_INLINE Vector<T> of(Vector<T> x, Vector<T> y) { return x + y; }
};

template <class T>
struct LaneNumbers {
  static constexpr int W = VectorOf<T>::kWidth;
  typename IntegerOf<sizeof(T)>::Type values[W];
  constexpr LaneNumbers() : values() {
    for (int l = 0; l < W; ++l) values[l] = l;
  }
};

// Output columns [begin, end), whose windows are positions of a line in scratch memory: element x
// of the input is position x - first + at, for `width` elements from `first` on.
struct Columns {
  int64_t begin, end, first, at, width;
};

Columns columns_from(const PoolArgs& g, int64_t begin) {
  const int64_t most = pool_columns(g.stride);
  const int64_t end = g.columns - begin < most ? g.columns : begin + most;
  const int64_t span = (end - begin - 1) * g.stride + (g.taps - 1) * g.dilation + 1;
  const int64_t low = begin * g.stride - g.pad, high = low + span;
  const int64_t first = low < 0 ? 0 : low, last = high < g.width ? high : g.width;
  return {begin, end, first, first - low, last > first ? last - first : 0};
}

// ⊕ of the covered lines, of which `at` is the first, by load(line).
template <class T, class Fold, class Load>
RF_INLINE Vector<T> fold_lines(const PoolArgs& g, const PoolLines& covered, const T* at,
                               const Load& load) {
  const int64_t slices = covered.slices, lines = covered.lines, step = g.line_step;
  Vector<T> v = load(at);
  for (int64_t l = 1; l < lines; ++l) v = Fold::of(v, load(at + l * step));
  for (int64_t s = 1; s < slices; ++s) {
    const T* slice = at + s * g.slice_step;
    for (int64_t l = 0; l < lines; ++l) v = Fold::of(v, load(slice + l * step));
  }
  return v;
}

// The first `count` elements, at most a vector of them; those behind are any.
template <class T, class Fold>
RF_INLINE Vector<T> fold_part(const PoolArgs& g, const PoolLines& covered, const T* at,
                              const T* end, int64_t count) {
  const T* last = at + (covered.slices - 1) * g.slice_step + (covered.lines - 1) * g.line_step;
  if (last + VectorOf<T>::kWidth <= end) {
    return fold_lines<T, Fold>(g, covered, at, [](const T* from) { return load_vector(from); });
  }
  return fold_lines<T, Fold>(g, covered, at, [&](const T* from) { return load_part(from, count); });
}

// out[x] = ⊕ of the covered lines' elements x, by whole vectors: elements behind the line are
// `kEmpty`.
template <class T, class Fold>
void fold_above(const PoolArgs& g, const T* in, const T* end, const PoolLines& covered,
                int64_t width, T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  if (covered.slices <= 0 || covered.lines <= 0) {
    for (int64_t x = 0; x < width; ++x) out[x] = Fold::kEmpty;
    return;
  }
  const T* first = in + covered.first;
  int64_t x = 0;
  for (; x + W <= width; x += W) {
    store_vector(out + x, fold_lines<T, Fold>(g, covered, first + x,
                                              [](const T* at) { return load_vector(at); }));
  }
  if (x == width) return;
  const int64_t count = width - x;
  const Vector<T> v = fold_part<T, Fold>(g, covered, first + x, end, count);
  static constexpr LaneNumbers<T> kLanes;
  const auto inside =
      load_vector(kLanes.values) < static_cast<typename IntegerOf<sizeof(T)>::Type>(count);
  store_vector(out + x, inside ? v : Fold::kEmpty - Vector<T>{});
}

// ⊕ of the taps of vectors of positions from `at` on. Sums of many taps are summed in parts, so
// that rounding grows with a part and the number of parts.
template <class T, class Fold>
RF_INLINE Vector<T> fold_taps(const T* at, int64_t taps, int64_t dilation) {
  constexpr int64_t kMostTaps = 256;
  Vector<T> total = load_vector(at);
  const int64_t first = taps < kMostTaps ? taps : kMostTaps;
  for (int64_t t = 1; t < first; ++t) total = Fold::of(total, load_vector(at + t * dilation));
  for (int64_t begin = kMostTaps; begin < taps; begin += kMostTaps) {
    const int64_t end = taps - begin < kMostTaps ? taps : begin + kMostTaps;
    Vector<T> part = load_vector(at + begin * dilation);
    for (int64_t t = begin + 1; t < end; ++t) part = Fold::of(part, load_vector(at + t * dilation));
    total = Fold::of(total, part);
  }
  return total;
}

// The first `count` lanes, over `divisors` unless it is null.
template <class T>
RF_INLINE void store_results(Vector<T> v, const T* divisors, int64_t count, T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  if (count >= W) {
    if (divisors != nullptr) v /= load_vector(divisors);
    return store_vector(out, v);
  }
  if (divisors != nullptr) v /= load_part(divisors, count);
  store_part(out, v, count);
}

#if defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__)
// Lines of the input and of the results that are a vector or less: taps are permutations of the
// folded line. False for others.
template <class T, class Fold>
bool pool_narrow(const PoolArgs& g) {
  constexpr int W = VectorOf<T>::kWidth;
  constexpr int64_t kMostTaps = 16;
  if (g.width > W || g.columns > W || g.taps > kMostTaps) return false;
  using Lane = typename IntegerOf<sizeof(T)>::Type;
  Lane lanes[kMostTaps][W];  // lane W is empty
  for (int64_t t = 0; t < g.taps; ++t) {
    for (int l = 0; l < W; ++l) {
      const int64_t x = l * g.stride + t * g.dilation - g.pad;
      lanes[t][l] = static_cast<Lane>(x < 0 || x >= g.width ? W : x);
    }
  }
  const Vector<T> empty = Fold::kEmpty - Vector<T>{};
  const T* end = static_cast<const T*>(g.in) + g.readable;
  for (int64_t plane = 0; plane < g.planes; ++plane) {
    const T* in = static_cast<const T*>(g.in) + plane * g.in_stride;
    const T* divisors = static_cast<const T*>(g.divisors);
    T* out = static_cast<T*>(g.out) + plane * g.out_stride;
    for (int64_t line = 0; line < g.lines; ++line, out += g.columns) {
      const PoolLines& covered = g.covered[line];
      const bool any = covered.slices > 0 && covered.lines > 0;
      const Vector<T> v =
          any ? fold_part<T, Fold>(g, covered, in + covered.first, end, g.width) : empty;
      Vector<T> total = __builtin_shuffle(v, empty, load_vector(lanes[0]));
      for (int64_t t = 1; t < g.taps; ++t) {
        total = Fold::of(total, __builtin_shuffle(v, empty, load_vector(lanes[t])));
      }
      store_results<T>(total, divisors, g.columns, out);
      if (divisors != nullptr) divisors += g.columns;
    }
  }
  return true;
}
#else
template <class T, class Fold>
bool pool_narrow(const PoolArgs&) {
  return false;
}
#endif

template <class T, class Fold>
void fold_line(const PoolArgs& g, const T* line, int64_t columns, const T* divisors, T* out,
               T* all) {
  constexpr int W = VectorOf<T>::kWidth;
  if (g.stride == 1) {
    for (int64_t c = 0; c < columns; c += W) {
      store_results<T>(fold_taps<T, Fold>(line + c, g.taps, g.dilation),
                       divisors == nullptr ? nullptr : divisors + c, columns - c, out + c);
    }
    return;
  }
  if (g.stride == 2) {
    for (int64_t c = 0; c < columns; c += W) {
      const Vector<T> a = fold_taps<T, Fold>(line + 2 * c, g.taps, g.dilation);
      const Vector<T> b =
          columns - c > W / 2 ? fold_taps<T, Fold>(line + 2 * c + W, g.taps, g.dilation) : a;
      Vector<T> even, odd;
      split_pairs<T>(a, b, &even, &odd);
      store_results<T>(even, divisors == nullptr ? nullptr : divisors + c, columns - c, out + c);
    }
    return;
  }
  const int64_t positions = (columns - 1) * g.stride + 1;
  for (int64_t p = 0; p < positions; p += W) {
    store_vector(all + p, fold_taps<T, Fold>(line + p, g.taps, g.dilation));
  }
  for (int64_t c = 0; c < columns; ++c) {
    out[c] = divisors == nullptr ? all[c * g.stride] : all[c * g.stride] / divisors[c];
  }
}

template <class T, class Fold>
void pool_with(const PoolArgs& g) {
  if (pool_narrow<T, Fold>(g)) return;
  const int64_t pitch = pool_pitch(g);
  T *scratch = static_cast<T*>(g.scratch), *all = scratch + kPoolLines * pitch;
  const T* end = static_cast<const T*>(g.in) + g.readable;
  const T* divisors = static_cast<const T*>(g.divisors);
  for (int64_t begin = 0; begin < g.columns; begin += pool_columns(g.stride)) {
    const Columns block = columns_from(g, begin);
    const int64_t columns = block.end - block.begin;
    const int64_t buffers = g.lines < kPoolLines ? g.lines : kPoolLines;
    for (int64_t i = 0; i < buffers * pitch; ++i) scratch[i] = Fold::kEmpty;
    for (int64_t plane = 0; plane < g.planes; ++plane) {
      const T* in = static_cast<const T*>(g.in) + plane * g.in_stride + block.first;
      T* out = static_cast<T*>(g.out) + plane * g.out_stride + begin;
      for (int64_t line = 0; line < g.lines; line += kPoolLines) {
        const int64_t count = g.lines - line < kPoolLines ? g.lines - line : kPoolLines;
        for (int64_t i = 0; i < count; ++i) {
          fold_above<T, Fold>(g, in, end, g.covered[line + i], block.width,
                              scratch + i * pitch + block.at);
        }
        for (int64_t i = 0; i < count; ++i) {
          const int64_t at = (line + i) * g.columns;
          fold_line<T, Fold>(g, scratch + i * pitch, columns,
                             divisors == nullptr ? nullptr : divisors + at + begin, out + at, all);
        }
      }
    }
  }
}

template <class T>
void pool(const PoolArgs& g) {
  g.maximum ? pool_with<T, MaximumOf<T>>(g) : pool_with<T, SumOf<T>>(g);
}

}  // namespace

void add_pool(KernelTable& table) {
  table.pool_f32 = pool<float>;
  table.pool_f64 = pool<double>;
}

}  // namespace redfuser::cpu::RF_ISA
