#include "cpu/simd/fourier.h"

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// A complex number in each lane; V is a vector, or double for one lane.
template <class V>
struct Point {
  V re, im;
};

template <class V>
constexpr int64_t kLanes = sizeof(V) / sizeof(double);

// By parts: a copy of the whole goes through memory.
template <class V>
RF_INLINE Point<V> load_point(const double* buffer, int64_t at) {
  buffer += 2 * kLanes<V> * at;
  Point<V> p;
  __builtin_memcpy(&p.re, buffer, sizeof(V));
  __builtin_memcpy(&p.im, buffer + kLanes<V>, sizeof(V));
  return p;
}

template <class V>
RF_INLINE void store_point(double* buffer, int64_t at, const Point<V>& p) {
  buffer += 2 * kLanes<V> * at;
  __builtin_memcpy(buffer, &p.re, sizeof(V));
  __builtin_memcpy(buffer + kLanes<V>, &p.im, sizeof(V));
}

template <class V>
RF_INLINE Point<V> operator+(const Point<V>& a, const Point<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
RF_INLINE Point<V> operator-(const Point<V>& a, const Point<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V>
RF_INLINE Point<V> times(const Point<V>& a, double re, double im) {
  return {a.re * re - a.im * im, a.im * re + a.re * im};
}

// The transform of R points in place. `roots` are of R.
template <int R, class V>
RF_INLINE void transform_few(Point<V> (&v)[R], const Point<double> (&roots)[R]) {
  if constexpr (R == 2) {
    const Point<V> sum = v[0] + v[1];
    v[1] = v[0] - v[1];
    v[0] = sum;
  } else if constexpr (R == 4) {
    const Point<V> even = v[0] + v[2], odd = v[1] + v[3], a = v[0] - v[2], b = v[1] - v[3];
    v[0] = even + odd;
    v[2] = even - odd;
    v[1] = {a.re + b.im, a.im - b.re};
    v[3] = {a.re - b.im, a.im + b.re};
  } else {
    // Bins q and R − q share the sums over points t and R − t.
    constexpr int kPairs = (R - 1) / 2;
    Point<V> sum[kPairs], difference[kPairs];
    const Point<V> first = v[0];
#pragma GCC unroll 8
    for (int t = 1; t <= kPairs; ++t) {
      sum[t - 1] = v[t] + v[R - t];
      difference[t - 1] = v[t] - v[R - t];
      v[0] = v[0] + sum[t - 1];
    }
#pragma GCC unroll 8
    for (int q = 1; q <= kPairs; ++q) {
      Point<V> even = first, odd = {V{}, V{}};
#pragma GCC unroll 8
      for (int t = 1; t <= kPairs; ++t) {
        const Point<double>& root = roots[q * t % R];
        even.re += sum[t - 1].re * root.re;
        even.im += sum[t - 1].im * root.re;
        odd.re += difference[t - 1].re * root.im;
        odd.im += difference[t - 1].im * root.im;
      }
      v[q] = {even.re + odd.im, even.im - odd.re};
      v[R - q] = {even.re - odd.im, even.im + odd.re};
    }
  }
}

template <class V, int R, bool kFirst>
void pass_of(const FourierPassArgs& args) {
  const int64_t done = args.done, part = args.points / R, step = args.count / (done * R);
  Point<double> few[R];
  for (int q = 0; q < R; ++q) few[q] = load_point<double>(args.roots, q * (args.count / R));
  for (int64_t begin = 0; begin < part; begin += done) {
    for (int64_t k = 0; k < done; ++k) {
      Point<V> v[R];
#pragma GCC unroll 8
      for (int q = 0; q < R; ++q) {
        v[q] = load_point<V>(args.in, begin + k + q * part);
        if (kFirst || q == 0) continue;
        const Point<double> root = load_point<double>(args.roots, k * q * step);
        v[q] = times(v[q], root.re, -root.im);
      }
      transform_few<R>(v, few);
#pragma GCC unroll 8
      for (int q = 0; q < R; ++q) store_point(args.out, begin * R + k + q * done, v[q]);
    }
  }
}

template <class V, int R>
RF_INLINE void pass_by(const FourierPassArgs& args) {
  args.done == 1 ? pass_of<V, R, true>(args) : pass_of<V, R, false>(args);
}

template <class V>
void pass(const FourierPassArgs& args) {
  switch (args.radix) {
    case 2:
      return pass_by<V, 2>(args);
    case 3:
      return pass_by<V, 3>(args);
    case 4:
      return pass_by<V, 4>(args);
    case 5:
      return pass_by<V, 5>(args);
    case 7:
      return pass_by<V, 7>(args);
  }
}

template <class V>
RF_INLINE Point<V> exchanged(const Point<V>& p, bool exchange) {
  return exchange ? Point<V>{p.im, p.re} : p;
}

template <class V>
void multiply(const FourierFactorArgs& args) {
  for (int64_t t = 0; t < args.points; ++t) {
    const Point<double> factor = load_point<double>(args.factors, t);
    const Point<V> x = exchanged(load_point<V>(args.in, t), args.exchange_in);
    store_point(args.out, t, exchanged(times(x, factor.re, factor.im), args.exchange_out));
  }
}

// The transforms of the even and odd samples are the even and odd part, about the middle, of the
// points' transform.
template <class V>
void untangle(const FourierRealArgs& args) {
  for (int64_t k = 0; k <= args.half; ++k) {
    const Point<V> a = load_point<V>(args.in, k == args.half ? 0 : k),
                   b = load_point<V>(args.in, k == 0 ? 0 : args.half - k);
    const Point<V> even = {(a.re + b.re) * 0.5, (a.im - b.im) * 0.5},
                   odd = {(a.im + b.im) * 0.5, (b.re - a.re) * 0.5};
    const Point<double> root =
        k == args.half ? Point<double>{-1, 0} : load_point<double>(args.roots, k);
    store_point(args.out, k, even + times(odd, root.re, -root.im));
  }
}

template <class V>
constexpr FourierKernels kFourier = {kLanes<V>, pass<V>, multiply<V>, untangle<V>};

}  // namespace

void add_fourier(KernelTable& table) {
  table.fourier = &kFourier<Vector<double>>;
  table.fourier_single = &kFourier<double>;
}

}  // namespace redfuser::cpu::RF_ISA
