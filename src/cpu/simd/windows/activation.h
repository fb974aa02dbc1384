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

// body(each) with the function of s that an activation is. The body stores its vectors: they stay
// in registers, as the paths do not meet before.
template <class T, class Body>
RF_INLINE void with_activation(const Activation& a, const Body& body) {
  const T low = static_cast<T>(a.low), high = static_cast<T>(a.high);
  const T scale = static_cast<T>(a.scale), shift = static_cast<T>(a.shift);
  if (!a.any) return body([](Vector<T> s) { return s; });
  if (!a.affine) return body([=](Vector<T> s) { return bounded<T>(s, low, high); });
  if (!a.gates) return body([=](Vector<T> s) { return within(s * scale + shift, low, high); });
  return body([=](Vector<T> s) { return s * within(s * scale + shift, low, high); });
}

}  // namespace redfuser::cpu::RF_ISA
