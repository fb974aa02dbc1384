#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Rows of the output whose sums are held in registers together.
constexpr int kFilterRows = 4;

template <class T, int NR>
void filter_block(const FilterArgs& f, const T* in, int64_t columns, T* out) {
  constexpr int W = VectorOf<T>::kWidth;
  const T* weights = static_cast<const T*>(f.weights);
  const T bias = static_cast<T>(f.bias);
  Vector<T> sum[NR];
  for (int r = 0; r < NR; ++r) sum[r] = Vector<T>{} + bias;
  for (int64_t t = 0; t < f.taps; ++t) {
    const T* at = in + f.offsets[t];
    for (int r = 0; r < NR; ++r) sum[r] += weights[t] * load_vector(at + r * f.in_stride);
  }
  for (int r = 0; r < NR; ++r) {
    if (columns >= W) {
      store_vector(out + r * f.out_stride, sum[r]);
    } else {
      for (int64_t c = 0; c < columns; ++c) out[r * f.out_stride + c] = sum[r][c];
    }
  }
}

template <class T>
void filter(const FilterArgs& f) {
  constexpr int W = VectorOf<T>::kWidth;
  static_assert(W <= kFilterSlack);
  const T* in = static_cast<const T*>(f.in);
  T* out = static_cast<T*>(f.out);
  int64_t r = 0;
  for (; r + kFilterRows <= f.rows; r += kFilterRows)
    for (int64_t c = 0; c < f.cols; c += W)
      filter_block<T, kFilterRows>(f, in + r * f.in_stride + c, f.cols - c,
                                   out + r * f.out_stride + c);
  for (; r < f.rows; ++r)
    for (int64_t c = 0; c < f.cols; c += W)
      filter_block<T, 1>(f, in + r * f.in_stride + c, f.cols - c, out + r * f.out_stride + c);
}

}  // namespace

void add_filter(KernelTable& table) {
  table.filter_f32 = filter<float>;
  table.filter_f64 = filter<double>;
}

}  // namespace redfuser::cpu::RF_ISA
