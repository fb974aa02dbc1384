// Tiles with a row for each position, as kernels with vectors of filters make them, as rows of
// filters.
#pragma once

#include "cpu/simd/gemm_pack.h"

namespace redfuser::cpu::RF_ISA {

// A tile [positions][width], read in whole squares of vectors, and where the rows of its first
// `filters` columns go.
template <class T>
struct TransposedTile {
  const T* tile;
  int64_t width, positions, filters;
  T* out;
  int64_t out_stride;           // between filters
  const T* residual = nullptr;  // in the places of `out`
};

// The first `count` lanes.
template <class T>
RF_INLINE void store_first(T* to, const Vector<T>& v, int64_t count) {
  if (count == VectorOf<T>::kWidth) return store_vector(to, v);
  copy_part(to, reinterpret_cast<const T*>(&v), count);
}

// v[i] += row i of `from`, of the first `rows` ones and `count` of their elements.
template <class T>
RF_INLINE void add_rows(const TransposedTile<T>& g, const T* from, int64_t rows, int64_t count,
                        Vector<T>* v) {
  constexpr int W = VectorOf<T>::kWidth;
  if (rows == W && count >= W) {
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) v[i] += load_vector(from + i * g.out_stride);
    return;
  }
  for (int64_t i = 0; i < rows; ++i, from += g.out_stride) {
    v[i] += count < W ? load_part(from, count) : load_vector(from);
  }
}

// out[f, p] = each(tile[p, f] + residual[f, p]), or each(tile[p, f]) without a residual.
template <class T, class Each>
RF_INLINE void transpose_tile(const TransposedTile<T>& g, const Each& each) {
  constexpr int W = VectorOf<T>::kWidth;
  for (int64_t f = 0; f < g.filters; f += W) {
    const int64_t rows = g.filters - f < W ? g.filters - f : W;
    for (int64_t p = 0; p < g.positions; p += W) {
      Vector<T> v[W];
      const T* from = g.tile + p * g.width + f;
      load_transposed<T>(from, g.width, v);
      const int64_t at = f * g.out_stride + p;
      if (g.residual != nullptr) add_rows(g, g.residual + at, rows, g.positions - p, v);
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) v[i] = each(v[i]);
      T* to = g.out + at;
      if (rows == W && g.positions - p >= W) {
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i) store_vector(to + i * g.out_stride, v[i]);
        continue;
      }
      const int64_t count = g.positions - p < W ? g.positions - p : W;
      for (int64_t i = 0; i < rows; ++i) store_first<T>(to + i * g.out_stride, v[i], count);
    }
  }
}

}  // namespace redfuser::cpu::RF_ISA
