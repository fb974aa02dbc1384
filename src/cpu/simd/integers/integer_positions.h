// The kernel of IntegerPositionsArgs for any dot product of four bytes, included like
// integer_block.h.
#pragma once

#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/transposed.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Positions of a block: as many registers of sums for either number of vectors of filters.
template <int NV>
inline constexpr int kPositionRows = kBlockRows* kBlockVectors / NV;

// MR positions side by side against NV vectors of filters.
template <class Dot, int MR, int NV>
void sum_position_block(const IntegerPositionsArgs& g, const char* image, int32_t* tile) {
  constexpr int W = VectorOf<int32_t>::kWidth;
  using V = Vector<int32_t>;
  V sum[MR][NV];
#pragma GCC unroll 24
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) sum[i][j] = load_vector(g.starts + j * W);
  const char* panel = static_cast<const char*>(g.panel);
  for (int64_t p = 0; p < g.groups; ++p, panel += 4 * kBlockVectors * W) {
    const char* at = image + g.offsets[p];
    V right[NV];
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) right[j] = Dot::template load<false>(panel + 4 * j * W);
#pragma GCC unroll 24
    for (int i = 0; i < MR; ++i) {
      int32_t word;
      __builtin_memcpy(&word, at + 4 * i, sizeof(word));
      const V left = word - V{};
#pragma GCC unroll 2
      for (int j = 0; j < NV; ++j) sum[i][j] = Dot::template add<false>(sum[i][j], left, right[j]);
    }
  }
#pragma GCC unroll 24
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < NV; ++j) store_vector(tile + (i * NV + j) * W, sum[i][j]);
}

using PositionBlockFn = void (*)(const IntegerPositionsArgs&, const char*, int32_t*);

template <class Dot, int NV, int MR = kPositionRows<NV>>
PositionBlockFn position_block_for(int64_t positions) {
  if constexpr (MR > 1) {
    if (positions < MR) return position_block_for<Dot, NV, MR - 1>(positions);
  }
  return sum_position_block<Dot, MR, NV>;
}

template <class Dot, int NV>
void sum_position_lines(const IntegerPositionsArgs& g) {
  constexpr int64_t W = VectorOf<int32_t>::kWidth, kMost = kPositionRows<NV>;
  const int64_t blocks = (g.columns + kMost - 1) / kMost;
  for (int64_t line = 0; line < g.lines; ++line) {
    const char* image = static_cast<const char*>(g.image) + 4 * line * g.line_step;
    int32_t* tile = g.tile + line * g.columns * NV * W;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t begin = g.columns * b / blocks, end = g.columns * (b + 1) / blocks;
      const auto block = position_block_for<Dot, NV>(end - begin);
      block(g, image + 4 * begin, tile + begin * NV * W);
    }
  }
  const TransposedTile<int32_t> tile{g.tile,    NV * W, g.lines * g.columns,
                                     g.filters, g.out,  g.out_stride};
  transpose_tile(tile, [](Vector<int32_t> v) { return v; });
}

template <class Dot>
void sum_positions(const IntegerPositionsArgs& g) {
  g.filters > VectorOf<int32_t>::kWidth ? sum_position_lines<Dot, 2>(g)
                                        : sum_position_lines<Dot, 1>(g);
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
