// Chains of pointwise operations (ChainArgs). Compiled without contraction: every operation of a
// chain rounds, as it does alone.
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/isa.h"
#include "cpu/simd/pointwise/chain_fold.h"
#include "cpu/simd/pointwise/chain_quantize.h"
#include "cpu/simd/pointwise/chain_types.h"

namespace redfuser::cpu::RF_ISA {
namespace {

bool has_scalars_of_rows(const ChainArgs& g) {
  bool any = false;
  for (int i = 0; i < g.count; ++i) {
    const ChainLink& link = g.links[i];
    any |= !is_unary(link.op) && !link.vector &&
           (link.operand.offsets != nullptr || link.operand.stride != 0);
  }
  return any;
}

// The results of NV vectors from column c on, or of `count` columns for NV = 0.
template <class T, int NV, bool kFunctions>
RF_INLINE void run_chain(const Row<T>& row, int64_t c, int64_t count, char* to) {
  constexpr int kCount = NV > 0 ? NV : 1;
  Vector<T> v[kCount];
  load_typed<T, NV>(v, row.first + c * row.first_bytes, row.first_type, count);
  int i = 0;
  if constexpr (sizeof(T) == sizeof(float) && NV % kBytesVectors == 0 && NV > 0) {
    if (row.end.any) {
      for (; i < row.end.first; ++i) run_step<T, NV, kFunctions>(v, row.steps[i], c, count);
      if (store_quantized<NV>(row.end, v, to)) return;
    }
  }
  for (; i < row.count; ++i) run_step<T, NV, kFunctions>(v, row.steps[i], c, count);
  store_typed<T, NV>(to, v, row.out_type, count);
}

// Runs of NV vectors and fewer, down to kLeast, from column c on: the first column that is left.
template <class T, int NV, int kLeast, bool kFunctions>
RF_INLINE int64_t run_vectors(const Row<T>& row, int64_t c, int64_t cols, char* out) {
  constexpr int W = VectorOf<T>::kWidth;
  for (; c + NV * W <= cols; c += NV * W) {
    run_chain<T, NV, kFunctions>(row, c, 0, out + c * row.out_bytes);
  }
  if constexpr (NV > kLeast) c = run_vectors<T, NV / 2, kLeast, kFunctions>(row, c, cols, out);
  return c;
}

// The last columns are NV whole vectors too, which overlap those before. They are computed first:
// the output may be the memory of an operand.
template <class T, int NV, bool kFunctions>
__attribute__((noinline)) void chain_columns(const Row<T>& row, int64_t cols, char* out) {
  constexpr int64_t W = NV * VectorOf<T>::kWidth;
  char last[NV * sizeof(Vector<T>)] = {};
  if (cols % W != 0) run_chain<T, NV, kFunctions>(row, cols - W, 0, last);
  if (run_vectors<T, kVectors, NV, kFunctions>(row, 0, cols, out) == cols) return;
  __builtin_memcpy(out + (cols - W) * row.out_bytes, last, static_cast<size_t>(W * row.out_bytes));
}

// A short row. All of it is loaded first: the output may be the memory of an operand.
template <bool kFunctions>
__attribute__((noinline)) void chain_short(const Row<float>& row, int64_t cols, char* out) {
  constexpr int W = VectorOf<float>::kWidth;
  static_assert(kShortVectors == kBytesVectors);
  Vector<float> v[kShortVectors];
  load_short(row, cols, v);
  int i = 0;
  if (row.end.any) {
    for (; i < row.end.first; ++i) run_short<kFunctions>(row.steps[i], cols, v);
    char bytes[kShortVectors * W];
    if (store_quantized<kShortVectors>(row.end, v, bytes)) {
      each_vector<kShortVectors>([&](auto j) RF_INLINED {
        __builtin_memcpy(out + short_column<float>(cols, j), bytes + j * W, W);
      });
      return;
    }
  }
  for (; i < row.count; ++i) run_short<kFunctions>(row.steps[i], cols, v);
  store_short(row, cols, v, out);
}

// A chain that ends in bytes takes as many vectors at once as one of bytes has elements.
template <class T, bool kFunctions>
RF_INLINE void chain_row(const Row<T>& row, int64_t cols, char* out) {
  constexpr int W = VectorOf<T>::kWidth;
  if (cols < W) return run_chain<T, 0, kFunctions>(row, 0, cols, out);
  if (row.end.any && cols >= kBytesVectors * W) {
    return chain_columns<T, kBytesVectors, kFunctions>(row, cols, out);
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    if (cols < kShortVectors * W) return chain_short<kFunctions>(row, cols, out);
  }
  chain_columns<T, 1, kFunctions>(row, cols, out);
}

bool follows(const Operand& a, bool vector, int64_t cols) {
  return a.offsets == nullptr && a.stride == (vector ? cols : 0);
}

// Rows that lie one after the other, with the same scalars, are one row.
ChainArgs long_rows(ChainArgs g) {
  bool one =
      g.rows > 1 && !g.folds.any() && g.out_stride == g.cols && follows(g.first, true, g.cols);
  for (int i = 0; one && i < g.count; ++i) {
    const ChainLink& link = g.links[i];
    one = is_unary(link.op) || follows(link.operand, link.vector, g.cols);
  }
  if (one) g.cols *= g.rows, g.rows = 1;
  return g;
}

template <class T>
void chain(const ChainArgs& args) {
  const ChainArgs g = long_rows(args);
  if (g.rows == 0 || g.cols == 0) return;
  const bool anew = has_scalars_of_rows(g);
  Row<T> row = row_of_chain<T>(g, 0);
  for (int64_t r = 0; r < g.rows; ++r) {
    if (r > 0) move_to_row(row, g, r);
    if (r > 0 && anew && !take_scalars(row, g, r)) row = row_of_chain<T>(g, r);
    char* out = static_cast<char*>(g.out);
    if (out != nullptr) out += r * g.out_stride * row.out_bytes;
    if constexpr (sizeof(T) == sizeof(float)) {
      if (g.folds.any()) {
        row.functions ? fold_row<true>(row, g.cols, out, g.folds, r)
                      : fold_row<false>(row, g.cols, out, g.folds, r);
        continue;
      }
    }
    row.functions ? chain_row<T, true>(row, g.cols, out) : chain_row<T, false>(row, g.cols, out);
  }
}

}  // namespace

void add_chain(KernelTable& table) {
  table.chain_f32 = chain<float>;
  table.chain_f64 = chain<double>;
}

}  // namespace redfuser::cpu::RF_ISA
