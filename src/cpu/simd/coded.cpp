// Products of few rows and a matrix of few bits, which is read once: of a block's codes, the zero
// point is subtracted before the sum, and the scale multiplies it.
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr int kWidth = VectorOf<float>::kWidth;
constexpr int kChunk = 32;   // codes that become floats together
constexpr int kColumns = 4;  // that share the loads of rows, with sums that do not wait for others

// to[i] = codes[i] − zero for `count` elements.
RF_INLINE void differences(float* to, const uint8_t* codes, int64_t count, float zero) {
  RF_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(codes[i]) - zero;
}

// The sums of a chunk's products. `w` has the differences, and zeros up to whole vectors.
template <int Rows, int Columns, bool Whole>
RF_INLINE void add_chunk(const CodedArgs& g, int64_t row, int64_t k, int64_t count,
                         const float (&w)[Columns][kChunk], Vector<float> (&sums)[Rows][Columns]) {
  for (int64_t i = 0; i < (Whole ? kChunk : count); i += kWidth) {
    for (int r = 0; r < Rows; ++r) {
      const float* const from = g.a + (row + r) * g.a_stride + k + i;
      Vector<float> a = {};
      if (Whole || count - i >= kWidth) {
        a = load_vector(from);
      } else {
        __builtin_memcpy(&a, from, static_cast<size_t>(count - i) * sizeof(float));
      }
      for (int c = 0; c < Columns; ++c) sums[r][c] += a * load_vector(w[c] + i);
    }
  }
}

RF_INLINE float sum_of(Vector<float> v) {
  float sum = 0;
  for (int i = 0; i < kWidth; ++i) sum += v[i];
  return sum;
}

// Rows × Columns results from `row` and `column` on.
template <int Rows, int Columns>
RF_INLINE void multiply(const CodedArgs& g, int64_t row, int64_t column) {
  const int64_t blocks = (g.depth + g.block - 1) / g.block;
  Vector<float> totals[Rows][Columns] = {};
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = block * g.block;
    const int64_t end = begin + g.block < g.depth ? begin + g.block : g.depth;
    float zeros[Columns], scales[Columns];
    for (int c = 0; c < Columns; ++c) {
      const int64_t at = (column + c) * blocks + block;
      zeros[c] = g.zeros ? static_cast<float>(g.zeros[at]) : g.zero;
      scales[c] = g.scales[at];
    }
    Vector<float> sums[Rows][Columns] = {};
    alignas(RF_VECTOR_BYTES) float w[Columns][kChunk];
    int64_t k = begin;
    for (; k + kChunk <= end; k += kChunk) {
      for (int c = 0; c < Columns; ++c) {
        differences(w[c], g.codes + (column + c) * g.depth + k, kChunk, zeros[c]);
      }
      add_chunk<Rows, Columns, true>(g, row, k, kChunk, w, sums);
    }
    if (k < end) {
      for (int c = 0; c < Columns; ++c) {
        __builtin_memset(w[c], 0, sizeof(w[c]));
        differences(w[c], g.codes + (column + c) * g.depth + k, end - k, zeros[c]);
      }
      add_chunk<Rows, Columns, false>(g, row, k, end - k, w, sums);
    }
    for (int r = 0; r < Rows; ++r) {
      for (int c = 0; c < Columns; ++c) totals[r][c] += sums[r][c] * scales[c];
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Columns; ++c) {
      g.c[(row + r) * g.c_stride + column + c] = sum_of(totals[r][c]);
    }
  }
}

template <int Columns>
void multiply_rows(const CodedArgs& g, int64_t column) {
  int64_t row = 0;
  for (; row + 2 <= g.rows; row += 2) multiply<2, Columns>(g, row, column);
  if (row < g.rows) multiply<1, Columns>(g, row, column);
}

void coded(const CodedArgs& g) {
  int64_t column = 0;
  for (; column + kColumns <= g.columns; column += kColumns) multiply_rows<kColumns>(g, column);
  for (; column < g.columns; ++column) multiply_rows<1>(g, column);
}

}  // namespace

void add_coded(KernelTable& table) { table.coded_f32 = coded; }

}  // namespace redfuser::cpu::RF_ISA
