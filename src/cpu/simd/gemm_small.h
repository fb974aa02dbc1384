// Products with few rows, where packing B would cost more than it saves: B is read once, in place.
#pragma once

#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/gemm_pack.h"

namespace redfuser::cpu::RF_ISA {

// C of NV vectors += depth rows of B, which lie side by side.
template <class T, int MR, int NV>
RF_INLINE void add_rows(int64_t depth, const T* a, int64_t a_stride, const T* b, int64_t b_stride,
                        T* c, int64_t c_stride) {
  constexpr int W = VectorOf<T>::kWidth;
  Vector<T> sum[MR][NV];
#pragma GCC unroll 4
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) sum[i][v] = load_vector(c + i * c_stride + v * W);
  for (int64_t p = 0; p < depth; ++p) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) {
      const Vector<T> row = load_vector(b + p * b_stride + v * W);
#pragma GCC unroll 4
      for (int i = 0; i < MR; ++i) sum[i][v] += (a[i * a_stride + p] - Vector<T>{}) * row;
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) store_vector(c + i * c_stride + v * W, sum[i][v]);
}

// B with unit stride along its columns: some rows at a time, each from end to end, so that memory
// is read in order. Rows that lie a multiple of 4096 bytes apart share the sets of the first-level
// cache. There are fewer of them than it has ways, for two loads of a line that vectors divide.
template <class T, int MR>
void multiply_columns(int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b,
                      int64_t b_stride, T* c, int64_t c_stride, bool accumulate) {
  constexpr int W = VectorOf<T>::kWidth, kVectors = MR == 1 ? 8 : 2;
  constexpr int64_t kDepth = 4;  // rows of B
  for (int i = 0; !accumulate && i < MR; ++i)
    for (int64_t j = 0; j < n; ++j) c[i * c_stride + j] = T{};
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t depth = k - p < kDepth ? k - p : kDepth;
    const T* rows = b + p * b_stride;
    int64_t j = 0;
    for (; j + kVectors * W <= n; j += kVectors * W)
      add_rows<T, MR, kVectors>(depth, a + p, a_stride, rows + j, b_stride, c + j, c_stride);
    for (; j + W <= n; j += W)
      add_rows<T, MR, 1>(depth, a + p, a_stride, rows + j, b_stride, c + j, c_stride);
    for (; j < n; ++j)
      for (int i = 0; i < MR; ++i)
        for (int64_t q = 0; q < depth; ++q)
          c[i * c_stride + j] += a[i * a_stride + p + q] * rows[q * b_stride + j];
  }
}

template <class T>
RF_INLINE T sum_of_lanes(Vector<T> v) {
  constexpr int W = VectorOf<T>::kWidth;
  T lanes[W];
  store_vector(lanes, v);
  for (int width = W / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

// Dot products of MR rows of A with NC columns of B, both with unit stride along k.
template <class T, int MR, int NC>
void dot_block(int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_stride, T* c,
               int64_t c_stride, bool accumulate) {
  constexpr int W = VectorOf<T>::kWidth;
  Vector<T> sum[MR][NC] = {};
  int64_t p = 0;
  for (; p + W <= k; p += W) {
    Vector<T> x[MR];
#pragma GCC unroll 4
    for (int i = 0; i < MR; ++i) x[i] = load_vector(a + i * a_stride + p);
#pragma GCC unroll 4
    for (int j = 0; j < NC; ++j) {
      const Vector<T> y = load_vector(b + j * b_stride + p);
#pragma GCC unroll 4
      for (int i = 0; i < MR; ++i) sum[i][j] += x[i] * y;
    }
  }
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NC; ++j) {
      T total = sum_of_lanes<T>(sum[i][j]);
      for (int64_t q = p; q < k; ++q) total += a[i * a_stride + q] * b[j * b_stride + q];
      T& to = c[i * c_stride + j];
      to = accumulate ? to + total : total;
    }
  }
}

// Dot products of a row of A with a vector's width of B's columns. The sums of their lanes are
// found together, after a transposition.
template <class T>
Vector<T> dot_vector(int64_t k, const T* a, const T* b, int64_t b_stride) {
  constexpr int W = VectorOf<T>::kWidth;
  Vector<T> sum[W] = {};
  int64_t p = 0;
  for (; p + W <= k; p += W) {
    const Vector<T> x = load_vector(a + p);
#pragma GCC unroll 16
    for (int j = 0; j < W; ++j) sum[j] += x * load_vector(b + j * b_stride + p);
  }
  transpose_square<T>(sum);
#pragma GCC unroll 5
  for (int half = W / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (int j = 0; j < half; ++j) sum[j] += sum[j + half];
  for (; p < k; ++p) {
    T column[W];
#pragma GCC unroll 16
    for (int j = 0; j < W; ++j) column[j] = b[j * b_stride + p];
    sum[0] += load_vector(column) * a[p];
  }
  return sum[0];
}

template <class T, int MR>
void multiply_rows(int64_t n, int64_t k, const T* a, int64_t a_stride, const T* b, int64_t b_stride,
                   T* c, int64_t c_stride, bool accumulate) {
  constexpr int W = VectorOf<T>::kWidth;
  int64_t j = 0;
  for (; j + W <= n; j += W) {
    for (int i = 0; i < MR; ++i) {
      const Vector<T> sums = dot_vector<T>(k, a + i * a_stride, b + j * b_stride, b_stride);
      T* to = c + i * c_stride + j;
      store_vector(to, accumulate ? load_vector(to) + sums : sums);
    }
  }
  for (; j + 4 <= n; j += 4)
    dot_block<T, MR, 4>(k, a, a_stride, b + j * b_stride, b_stride, c + j, c_stride, accumulate);
  for (; j < n; ++j)
    dot_block<T, MR, 1>(k, a, a_stride, b + j * b_stride, b_stride, c + j, c_stride, accumulate);
}

}  // namespace redfuser::cpu::RF_ISA
