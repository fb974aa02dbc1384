#include "cpu/simd/moves/weighted_rows.h"

#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Of V vectors of columns.
template <class T, int V, bool kMaximum>
RF_INLINE void fold_rows(const WeightedRowsArgs& g, int64_t column) {
  constexpr int W = VectorOf<T>::kWidth;
  T* out = static_cast<T*>(g.out) + column;
  const T *from = static_cast<const T*>(g.from) + column,
          *weights = static_cast<const T*>(g.weights);
  Vector<T> total[V];
#pragma GCC unroll 4
  for (int i = 0; i < V; ++i) total[i] = load_vector(out + i * W);
  for (int64_t k = 0; k < g.count; ++k) {
    const T* row = from + g.offsets[k];
    const Vector<T> weight = weights[k] - Vector<T>{};
#pragma GCC unroll 4
    for (int i = 0; i < V; ++i) {
      const Vector<T> term = weight * load_vector(row + i * W);
      if constexpr (kMaximum) {
        total[i] = ((term > total[i]) | (term != term)) ? term : total[i];
      } else {
        total[i] += term;
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < V; ++i) store_vector(out + i * W, total[i]);
}

template <class T, bool kMaximum>
void fold_columns(const WeightedRowsArgs& g) {
  constexpr int W = VectorOf<T>::kWidth;
  static_assert(kWeightedColumns % W == 0);
  const int64_t columns = (g.columns + kWeightedColumns - 1) / kWeightedColumns * kWeightedColumns;
  int64_t c = 0;
  for (; c + 4 * W <= columns; c += 4 * W) fold_rows<T, 4, kMaximum>(g, c);
  for (; c < columns; c += W) fold_rows<T, 1, kMaximum>(g, c);
}

template <class T>
void weighted_rows(const WeightedRowsArgs& g) {
  g.maximum ? fold_columns<T, true>(g) : fold_columns<T, false>(g);
}

}  // namespace

void add_weighted_rows(KernelTable& table) {
  table.weighted_rows_f32 = weighted_rows<float>;
  table.weighted_rows_f64 = weighted_rows<double>;
}

}  // namespace redfuser::cpu::RF_ISA
