// Elements at positions that are data: the positions, and copies of the elements.
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

void bound_positions(int64_t rows, int64_t cols, int64_t* out, int64_t out_stride, Operand a,
                     const PositionBounds& bounds) {
  const int64_t size = bounds.size, last = bounds.last;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t* x = row_of<int64_t>(a, r);
    int64_t* z = out + r * out_stride;
    RF_INDEPENDENT
    for (int64_t c = 0; c < cols; ++c) {
      int64_t v = x[c];
      v += v < 0 ? size : 0;
      v = v < last ? v : last;
      z[c] = v > 0 ? v : 0;
    }
  }
}

template <class T, bool kScaled>
void gather_rows(const GatherArgs& g) {
  const int64_t scale = g.scale, step = g.column_stride;
  for (int64_t r = 0; r < g.rows; ++r) {
    const T* from =
        static_cast<const T*>(g.from) + (g.row_offsets ? g.row_offsets[r] : r * g.row_stride);
    const int64_t* at = row_of<int64_t>(g.positions, r);
    T* out = static_cast<T*>(g.out) + r * g.out_stride;
#pragma GCC unroll 4
    for (int64_t c = 0; c < g.columns; ++c) {
      out[c] = from[kScaled ? at[c] * scale + c * step : at[c]];
    }
  }
}

template <class T>
void gather(const GatherArgs& g) {
  g.scale == 1 && g.column_stride == 0 ? gather_rows<T, false>(g) : gather_rows<T, true>(g);
}

}  // namespace

void add_gathers(KernelTable& table) {
  table.bound_positions = bound_positions;
  table.gather[0] = gather<uint8_t>;
  table.gather[1] = gather<uint16_t>;
  table.gather[2] = gather<uint32_t>;
  table.gather[3] = gather<uint64_t>;
}

}  // namespace redfuser::cpu::RF_ISA
