#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/simd/combine.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Four vectors of partial results hide the latency and, for sums, divide the rounding error.
template <class T, class Combine>
T reduce_row(const T* x, int64_t cols) {
  constexpr int W = VectorOf<T>::kWidth;
  Vector<T> v0 = load_vector(x), v1 = load_vector(x + W), v2 = load_vector(x + 2 * W),
            v3 = load_vector(x + 3 * W);
  int64_t c = 4 * W;
  for (; c + 4 * W <= cols; c += 4 * W) {
    v0 = Combine::of(v0, load_vector(x + c));
    v1 = Combine::of(v1, load_vector(x + c + W));
    v2 = Combine::of(v2, load_vector(x + c + 2 * W));
    v3 = Combine::of(v3, load_vector(x + c + 3 * W));
  }
  for (; c + W <= cols; c += W) v0 = Combine::of(v0, load_vector(x + c));
  v0 = Combine::of(Combine::of(v0, v1), Combine::of(v2, v3));
  T total = combined_lanes<Combine, T>(v0);
  for (; c < cols; ++c) total = Combine::of(total, x[c]);
  return total;
}

#if defined(__x86_64__)
// Rows with a NaN are reduced anew.
template <class Combine>
float extreme_of_row(const float* x, int64_t cols) {
  constexpr int W = VectorOf<float>::kWidth;
  Vector<float> v[4];
  NaNs nans;
  for (int i = 0; i < 4; ++i) v[i] = load_vector(x + i * W);
  nans.add(v[0], v[1]);
  nans.add(v[2], v[3]);
  int64_t c = 4 * W;
  for (; c + 4 * W <= cols; c += 4 * W) {
    Vector<float> y[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      y[i] = load_vector(x + c + i * W);
      v[i] = extreme(Combine{}, y[i], v[i]);
    }
    nans.add(y[0], y[1]);
    nans.add(y[2], y[3]);
  }
  // The rest, with elements before it that are there already.
  for (int i = 0; i < 4; ++i) {
    const Vector<float> last = load_vector(x + cols - (4 - i) * W);
    nans.add(last, last);
    v[i] = extreme(Combine{}, last, v[i]);
  }
  if (nans.found()) return reduce_row<float, Combine>(x, cols);
  v[0] = extreme(Combine{}, extreme(Combine{}, v[3], v[2]), extreme(Combine{}, v[1], v[0]));
  return combined_lanes<Combine, float>(v[0]);
}
#endif

template <class T, class Combine>
RF_INLINE T long_row(const T* x, int64_t cols) {
#if defined(__x86_64__)
  if constexpr (sizeof(T) == 4 && (__is_same(Combine, Max) || __is_same(Combine, Min))) {
    return extreme_of_row<Combine>(x, cols);
  }
#endif
  return reduce_row<T, Combine>(x, cols);
}

// As many rows as a vector has lanes: their vectors of partial results are transposed, so that the
// lanes are combined for all rows at once, and elements after whole vectors row beside row.
template <class T, class Combine>
void reduce_rows(const T* const* rows, int64_t cols, T* totals) {
  constexpr int W = VectorOf<T>::kWidth;
  Vector<T> total = load_vector(totals);
  int64_t c = 0;
  if (cols >= W) {
    Vector<T> parts[W];
    for (int l = 0; l < W; ++l) {
      parts[l] = load_vector(rows[l]);
      for (c = W; c + W <= cols; c += W) {
        parts[l] = Combine::of(parts[l], load_vector(rows[l] + c));
      }
    }
    transpose_square<T>(parts);
#pragma GCC unroll 5
    for (int half = W / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int l = 0; l < half; ++l) parts[l] = Combine::of(parts[l], parts[l + half]);
    total = Combine::of(total, parts[0]);
  }
  for (; c < cols; ++c) {
    T column[W];
#pragma GCC unroll 16
    for (int l = 0; l < W; ++l) column[l] = rows[l][c];
    total = Combine::of(total, load_vector(column));
  }
  store_vector(totals, total);
}

template <class T, class Combine>
void reduce_kernel(int64_t rows, int64_t cols, void* accumulator, Operand a) {
  constexpr int W = VectorOf<T>::kWidth;
  constexpr int64_t kPart = 2048;  // elements
  T* totals = static_cast<T*>(accumulator);
  const bool is_long = cols >= 4 * W;
  int64_t r = 0;
  for (; !is_long && r + W <= rows; r += W) {
    const T* block[W];
    for (int l = 0; l < W; ++l) block[l] = row_of<T>(a, r + l);
    reduce_rows<T, Combine>(block, cols, totals + r);
  }
  for (; r < rows; ++r) {
    const T* x = row_of<T>(a, r);
    T total = totals[r];
    if (is_long) {
      // Parts of a long row have sums of their own, whose rounding errors stay small.
      for (int64_t c = 0, count = 0; c < cols; c += count) {
        count = cols - c < 2 * kPart ? cols - c : kPart;
        total = Combine::of(total, long_row<T, Combine>(x + c, count));
      }
    } else {
      for (int64_t c = 0; c < cols; ++c) total = Combine::of(total, x[c]);
    }
    totals[r] = total;
  }
}

template <class T, class Combine>
void reduce_plain(int64_t rows, int64_t cols, void* accumulator, Operand a) {
  T* totals = static_cast<T*>(accumulator);
  for (int64_t r = 0; r < rows; ++r) {
    const T* x = row_of<T>(a, r);
    T total = totals[r];
    for (int64_t c = 0; c < cols; ++c) total = static_cast<T>(Combine::of(total, x[c]));
    totals[r] = total;
  }
}

}  // namespace

void add_reduce(KernelTable& table) {
  ReduceFn* f32 = table.reduce[static_cast<int>(Elem::F32)];
  f32[0] = reduce_kernel<float, Sum>;
  f32[1] = reduce_kernel<float, Prod>;
  f32[2] = reduce_kernel<float, Max>;
  f32[3] = reduce_kernel<float, Min>;
  ReduceFn* f64 = table.reduce[static_cast<int>(Elem::F64)];
  f64[0] = reduce_kernel<double, Sum>;
  f64[1] = reduce_kernel<double, Prod>;
  f64[2] = reduce_kernel<double, Max>;
  f64[3] = reduce_kernel<double, Min>;
  // Integer sums and products wrap, so they run on unsigned elements.
  ReduceFn* i64 = table.reduce[static_cast<int>(Elem::I64)];
  ReduceFn* u64 = table.reduce[static_cast<int>(Elem::U64)];
  i64[0] = u64[0] = reduce_plain<uint64_t, Sum>;
  i64[1] = u64[1] = reduce_plain<uint64_t, Prod>;
  i64[2] = reduce_plain<int64_t, Max>;
  i64[3] = reduce_plain<int64_t, Min>;
  u64[2] = reduce_plain<uint64_t, Max>;
  u64[3] = reduce_plain<uint64_t, Min>;
  ReduceFn* i32 = table.reduce[static_cast<int>(Elem::I32)];
  i32[0] = reduce_plain<uint32_t, Sum>;
  i32[1] = reduce_plain<uint32_t, Prod>;
  i32[2] = reduce_plain<int32_t, Max>;
  i32[3] = reduce_plain<int32_t, Min>;
  ReduceFn* logic = table.reduce[static_cast<int>(Elem::Bool)];
  logic[2] = reduce_plain<uint8_t, Max>;
  logic[3] = reduce_plain<uint8_t, Min>;
}

}  // namespace redfuser::cpu::RF_ISA
