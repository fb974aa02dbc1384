// The loop of elementwise kernels of one operand.
#pragma once

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {

template <class T, class Out, class Function>
void unary_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = row_of<T>(a, r);
    Out* y = static_cast<Out*>(out) + r * out_stride;
    RF_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) y[c] = Function::of(x[c]);
  }
}

// The same by whole vectors, of a function that has them: Function::of(Vector<T>). The last
// elements are those of a vector too, so that a value does not depend on its place.
template <class T, class Function>
void whole_vectors_kernel(int64_t rows, int64_t cols, void* out, int64_t out_stride, Operand a) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = row_of<T>(a, r);
    T* y = static_cast<T*>(out) + r * out_stride;
    int64_t c = 0;
    for (; c + W <= cols; c += W) store_vector(y + c, Function::of(load_vector(x + c)));
    if (c < cols) store_part(y + c, Function::of(load_part(x + c, cols - c)), cols - c);
  }
}

template <class T, class Function>
void add_unary(UnaryFn* row, UnaryOp op) {
  if constexpr (requires { Function::kernel; }) {
    row[static_cast<int>(op)] = Function::kernel;
  } else {
    row[static_cast<int>(op)] = unary_kernel<T, decltype(Function::of(T{})), Function>;
  }
}

}  // namespace redfuser::cpu::RF_ISA

// Names a function of one argument so that it can be a template parameter.
#define RF_FUNCTION(NAME, RESULT, TYPE, EXPRESSION)           \
  struct NAME {                                               \
    static RF_INLINE RESULT of(TYPE x) { return EXPRESSION; } \
  };
