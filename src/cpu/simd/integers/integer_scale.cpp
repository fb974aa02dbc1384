// Sums of integers as scaled floats, and what becomes of these. Compiled without contraction: the
// product with the scale and the sum with the offset round, as they do alone.
#include "cpu/simd/activation.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

using Floats = Vector<float>;
using Ints = Vector<int32_t>;
constexpr int64_t kWidth = VectorOf<float>::kWidth;
constexpr int kVectors = 4;  // at once

struct Row {
  int64_t count;
  const int32_t* c;
  const float* residual;
  float scale, offset;
  float* out;
};

RF_INLINE Floats scaled_sums(const Row& row, Ints c) {
  return __builtin_convertvector(c, Floats) * row.scale + row.offset;
}

template <bool kAdds, class Each>
RF_INLINE void scale_row(const Row& row, const Each& each) {
  int64_t j = 0;
  for (; j + kVectors * kWidth <= row.count; j += kVectors * kWidth) {
    Floats v[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      v[i] = scaled_sums(row, load_vector(row.c + j + i * kWidth));
      if constexpr (kAdds) v[i] = v[i] + load_vector(row.residual + j + i * kWidth);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) store_vector(row.out + j + i * kWidth, each(v[i]));
  }
  for (; j + kWidth <= row.count; j += kWidth) {
    Floats v = scaled_sums(row, load_vector(row.c + j));
    if constexpr (kAdds) v = v + load_vector(row.residual + j);
    store_vector(row.out + j, each(v));
  }
  if (j == row.count) return;
  const int64_t rest = row.count - j;
  Floats v = scaled_sums(row, load_part(row.c + j, rest));
  if constexpr (kAdds) v = v + load_part(row.residual + j, rest);
  store_part(row.out + j, each(v), rest);
}

template <bool kAdds>
void scale_rows(const IntegerScaleArgs& g) {
  with_bounds<float>(g.each.logistic ? Activation{} : g.each, [&](auto each) {
    for (int64_t i = 0; i < g.rows; ++i) {
      const Row row{g.count,
                    g.c + i * g.c_stride,
                    kAdds ? g.residual + i * g.out_stride : nullptr,
                    g.scales[i * g.scale_step],
                    g.offsets == nullptr ? -0.0f : g.offsets[i * g.offset_step],
                    g.out + i * g.out_stride};
      scale_row<kAdds>(row, each);
      if (g.each.logistic) activate_floats(g.each, row.count, row.out);
    }
  });
}

}  // namespace

void scale_integers(const IntegerScaleArgs& args) {
  args.each.adds ? scale_rows<true>(args) : scale_rows<false>(args);
}

}  // namespace redfuser::cpu::RF_ISA
