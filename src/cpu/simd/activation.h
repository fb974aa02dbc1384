// What becomes of a vector of sums before it is stored (Activation).
#pragma once

#include "cpu/simd/vector_math.h"

namespace redfuser::cpu::RF_ISA {

template <class T>
RF_INLINE Vector<T> bounded(Vector<T> x, T low, T high) {
  const Vector<T> above = x <= low ? low - Vector<T>{} : x;
  return above >= high ? high - Vector<T>{} : above;
}

// The same but for the sign of zeros.
RF_INLINE Vector<float> within(Vector<float> x, float low, float high) {
  return at_most(at_least(x, low), high);
}
RF_INLINE Vector<double> within(Vector<double> x, double low, double high) {
  return bounded<double>(x, low, high);
}

// body(each) with the function of s that an activation without an exponential is. The body stores
// its vectors: they stay in registers, as the paths do not meet before.
template <class T, class Body>
RF_INLINE void with_bounds(const Activation& a, const Body& body) {
  const T low = static_cast<T>(a.low), high = static_cast<T>(a.high);
  const T scale = static_cast<T>(a.scale), shift = static_cast<T>(a.shift);
  if (!a.any) return body([](Vector<T> s) { return s; });
  if (!a.affine) return body([=](Vector<T> s) { return bounded<T>(s, low, high); });
  if (!a.gates) return body([=](Vector<T> s) { return within(s * scale + shift, low, high); });
  return body([=](Vector<T> s) { return s * within(s * scale + shift, low, high); });
}

// The same of any activation, for bodies of few vectors: an exponential is some twenty
// instructions.
template <class T, class Body>
RF_INLINE void with_activation(const Activation& a, const Body& body) {
  if constexpr (sizeof(T) == sizeof(float)) {
    const T scale = static_cast<T>(-a.scale), shift = static_cast<T>(a.shift);
    const auto divisor = [=](Vector<T> s) { return 1.0f + exp_of(s * scale - shift); };
    if (a.logistic && a.gates) return body([=](Vector<T> s) { return s / divisor(s); });
    if (a.logistic) return body([=](Vector<T> s) { return 1.0f / divisor(s); });
  }
  with_bounds<T>(a, body);
}

// Of rows of `vectors` vectors in place, which are in the first-level cache.
template <class T>
__attribute__((noinline)) void activate_rows(const Activation& a, int rows, int vectors, T* out,
                                             int64_t stride) {
  with_activation<T>(a, [&](auto each) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < vectors; ++j) {
        T* at = out + i * stride + j * VectorOf<T>::kWidth;
        store_vector(at, each(load_vector(at)));
      }
    }
  });
}

// out[i, vector j] = the activation of sum(i, j), which is in a register. Divisions of a row
// overlap with the exponentials of the next once all are stored.
template <class T, int ROWS, int VECTORS, class Sum>
RF_INLINE void store_activated(const Activation& a, T* out, int64_t stride, const Sum& sum) {
  with_bounds<T>(a.logistic ? Activation{} : a, [&](auto each) {
#pragma GCC unroll 12
    for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 8
      for (int j = 0; j < VECTORS; ++j) {
        store_vector(out + i * stride + j * VectorOf<T>::kWidth, each(sum(i, j)));
      }
    }
  });
  if (a.logistic) activate_rows(a, ROWS, VECTORS, out, stride);
}

}  // namespace redfuser::cpu::RF_ISA
