// The operations of a chain on vectors that stay in registers.
#pragma once

#include "cpu/simd/pointwise/chain_steps.h"
#include "cpu/simd/quotients.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Vectors of a result that are held together: steps are dispatched once for all of them.
constexpr int kVectors = 8;

// Vectors of a row that has fewer columns than kShortVectors of them, but not than one: the last
// ones overlap.
constexpr int kShortVectors = 4;
template <class T>
RF_INLINE int64_t short_column(int64_t cols, int j) {
  constexpr int W = VectorOf<T>::kWidth;
  return j * W < cols - W ? j * W : cols - W;
}

template <class T, int NV>
RF_INLINE Vector<T> load_columns(const T* from, int j, int64_t count) {
  if constexpr (NV > 0) return load_vector(from + j * VectorOf<T>::kWidth);
  Vector<T> v{};
  copy_part(reinterpret_cast<T*>(&v), from, count);
  return v;
}

template <class T, int NV, bool kShort, class Function>
RF_INLINE void with_vector(Vector<T>* v, const T* from, int64_t count, Function function) {
  each_vector<NV>([&](auto j) RF_INLINED {
    if constexpr (kShort) {
      v[j] = function(v[j], load_vector(from + short_column<T>(count, j)));
    } else {
      v[j] = function(v[j], load_columns<T, NV>(from, j, count));
    }
  });
}

template <class T, int NV, class Function>
RF_INLINE void with_scalars(Vector<T>* v, const Step<T>& step, Function function) {
  const Vector<T> o = step.scalar - Vector<T>{}, second = step.second - Vector<T>{};
  each_vector<NV>([&](auto j) RF_INLINED { v[j] = function(v[j], o, second); });
}

// The function takes an address: a copy is in memory, and `v` stays in registers.
template <class T, int NV>
RF_INLINE void with_function(Vector<T>* v, void (*function)(float* x, int64_t vectors)) {
  if constexpr (sizeof(T) == sizeof(float)) {
    constexpr int kCount = NV > 0 ? NV : 1;
    Vector<T> copy[kCount];
    each_vector<NV>([&](auto j) RF_INLINED { copy[j] = v[j]; });
    function(reinterpret_cast<float*>(copy), kCount);
    each_vector<NV>([&](auto j) RF_INLINED { v[j] = copy[j]; });
  }
}

// kFunctions: the row may have functions. Erf and Tanh are calls, on copies in memory. kShort: `v`
// are the vectors of a short row of `count` columns.
template <class T, int NV, bool kFunctions, bool kShort = false>
RF_INLINE void run_step(Vector<T>* v, const Step<T>& step, int64_t c, int64_t count) {
  using V = Vector<T>;
  const auto vector = [&](auto function) RF_INLINED {
    with_vector<T, NV, kShort>(v, step.vector + c, count, function);
  };
  const auto scalar = [&](auto function) RF_INLINED { with_scalars<T, NV>(v, step, function); };
  switch (step.code) {
    case Code::AddV:
      return vector([](V x, V o) RF_INLINED { return x + o; });
    case Code::SubV:
      return vector([](V x, V o) RF_INLINED { return x - o; });
    case Code::SubFromV:
      return vector([](V x, V o) RF_INLINED { return o - x; });
    case Code::MulV:
      return vector([](V x, V o) RF_INLINED { return x * o; });
    case Code::DivV:
      return vector([](V x, V o) RF_INLINED { return x / o; });
    case Code::DivIntoV:
      return vector([](V x, V o) RF_INLINED { return o / x; });
    case Code::MaxV:
      return vector([](V x, V o) RF_INLINED { return ((x > o) | (x != x)) ? x : o; });
    case Code::MaxOfV:
      return vector([](V x, V o) RF_INLINED { return ((o > x) | (o != o)) ? o : x; });
    case Code::MinV:
      return vector([](V x, V o) RF_INLINED { return ((x < o) | (x != x)) ? x : o; });
    case Code::MinOfV:
      return vector([](V x, V o) RF_INLINED { return ((o < x) | (o != o)) ? o : x; });
    case Code::AddS:
      return scalar([](V x, V o, V) RF_INLINED { return x + o; });
    case Code::SubFromS:
      return scalar([](V x, V o, V) RF_INLINED { return o - x; });
    case Code::MulS:
      return scalar([](V x, V o, V) RF_INLINED { return x * o; });
    case Code::DivS:
      return Divisor<T>(step.scalar, step.second)
          .template divide<(NV > 0 ? NV : 1)>(v, [&](int j) RF_INLINED { return v[j]; });
    case Code::DivIntoS:
      return scalar([](V x, V o, V) RF_INLINED { return o / x; });
    // A value that is not a number is neither less nor greater, and stays.
    case Code::MaxS:
      return scalar([](V x, V o, V) RF_INLINED { return x <= o ? o : x; });
    case Code::MaxOfS:
      return scalar([](V x, V o, V) RF_INLINED { return o > x ? o : x; });
    case Code::MinS:
      return scalar([](V x, V o, V) RF_INLINED { return x >= o ? o : x; });
    case Code::MinOfS:
      return scalar([](V x, V o, V) RF_INLINED { return o < x ? o : x; });
    case Code::ScaleS:
      return scalar([](V x, V o, V second) RF_INLINED { return x * o + second; });
    case Code::ClampS:
      return scalar([](V x, V o, V second) RF_INLINED {
        const V above = x <= o ? o : x;
        return above >= second ? second : above;
      });
    case Code::Abs:
      return scalar([](V x, V, V) RF_INLINED { return magnitude(x); });
    case Code::Square:
      return scalar([](V x, V, V) RF_INLINED { return x * x; });
    case Code::Round:
      return scalar([](V x, V, V) RF_INLINED { return rounded<T>(x); });
    case Code::Exp:
      if constexpr (kFunctions && sizeof(T) == sizeof(float)) {
        each_vector<NV>([&](auto j) RF_INLINED { v[j] = exp_of(v[j]); });
      }
      return;
    case Code::Erf:
      if constexpr (kFunctions) with_function<T, NV>(v, erf_in_place);
      return;
    case Code::Tanh:
      if constexpr (kFunctions) with_function<T, NV>(v, tanh_in_place);
      return;
  }
}

// The results of NV vectors from column c on.
template <class T, int NV, bool kFunctions>
RF_INLINE void run_steps(const Row<T>& row, int64_t c, Vector<T>* v) {
  load_typed<T, NV>(v, row.first + c * row.first_bytes, row.first_type, 0);
  for (int i = 0; i < row.count; ++i) run_step<T, NV, kFunctions>(v, row.steps[i], c, 0);
}

// Of a short row.
template <class T>
RF_INLINE void load_short(const Row<T>& row, int64_t cols, Vector<T>* v) {
  each_vector<kShortVectors>([&](auto j) RF_INLINED {
    const char* from = row.first + short_column<T>(cols, j) * row.first_bytes;
    load_typed<T, 1>(v + j, from, row.first_type, 0);
  });
}

template <bool kFunctions>
RF_INLINE void run_short(const Step<float>& step, int64_t cols, Vector<float>* v) {
  run_step<float, kShortVectors, kFunctions, true>(v, step, 0, cols);
}
RF_INLINE void store_short(const Row<float>& row, int64_t cols, const Vector<float>* v, char* out) {
  each_vector<kShortVectors>([&](auto j) RF_INLINED {
    char* to = out + short_column<float>(cols, j) * row.out_bytes;
    store_typed<float, 1>(to, v + j, row.out_type, 0);
  });
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
