// The kernel of byte_filter.h for any dot product of four bytes, included like integer_block.h.
#pragma once

#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/integers/byte_filter.h"
#include "cpu/simd/integers/integer_gemm.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// Vectors of sums at once, which hide the latency of the dot product.
constexpr int64_t kFilterVectors = 4;

// Vectors of successive columns as Dot::add takes them.
class SpreadBytes {
 public:
  explicit SpreadBytes(const ByteFilterArgs& g)
#if RF_VECTOR_BYTES == 64
      : words_(_mm512_loadu_si512(g.spread->words)),
        bytes_(_mm512_maskz_broadcast_i32x4(
            kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(g.spread->bytes)))){}
#else
      : bytes_(_mm256_broadcastsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(g.spread->bytes)))),
        step_(4 * g.step) {
  }
#endif

        RF_INLINE Vector<int32_t> load(const uint8_t* from) const {
#if RF_VECTOR_BYTES == 64
    const __m512i near = _mm512_maskz_permutexvar_epi32(kAll, words_, _mm512_loadu_si512(from));
    return (Vector<int32_t>)_mm512_shuffle_epi8(near, bytes_);
#else
    const auto four = [](const uint8_t* at) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    };
    const __m256i near =
        _mm256_inserti128_si256(_mm256_castsi128_si256(four(from)), four(from + step_), 1);
    return (Vector<int32_t>)_mm256_shuffle_epi8(near, bytes_);
#endif
  }

 private:
#if RF_VECTOR_BYTES == 64
  // GCC 12 warns of forms without a mask.
  static constexpr __mmask16 kAll = 0xffff;
  __m512i words_, bytes_;
#else
  __m256i bytes_;
  int64_t step_;
#endif
};

// Where the sums of a vector come from and go to: `room` elements at most.
struct FilteredVector {
  const uint8_t* in;
  int32_t* out;
  int64_t room;
};

template <class Dot, int NV>
void filter_bytes_block(const ByteFilterArgs& g, const FilteredVector* vectors) {
  using V = Vector<int32_t>;
  const SpreadBytes spread(g);
  V sum[NV];
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) sum[v] = g.start - V{};
  for (int64_t k = 0; k < g.count; ++k) {
    const V word = static_cast<int32_t>(g.words[k]) - V{};
    const int64_t offset = g.offsets[g.numbers[k]];
#pragma GCC unroll 4
    for (int v = 0; v < NV; ++v)
      sum[v] = Dot::template add<true>(sum[v], word, spread.load(vectors[v].in + offset));
  }
#pragma GCC unroll 4
  for (int v = 0; v < NV; ++v) {
    if (vectors[v].room >= VectorOf<int32_t>::kWidth) {
      store_vector(vectors[v].out, sum[v]);
    } else {
      int32_t part[VectorOf<int32_t>::kWidth];
      store_vector(part, sum[v]);
      for (int64_t i = 0; i < vectors[v].room; ++i) vectors[v].out[i] = part[i];
    }
  }
}

// The last vector of a line ends with it. Those of lines shorter than a vector also have elements
// in the place of the next line, which follows.
template <class Dot>
void filter_bytes(const ByteFilterArgs& g) {
  constexpr int64_t W = VectorOf<int32_t>::kWidth;
  const int64_t last = g.columns < W ? 0 : g.columns - W, all = g.lines * g.columns;
  FilteredVector vectors[kFilterVectors];
  int64_t line = 0, column = 0;
  while (line < g.lines) {
    int64_t count = 0;
    for (; count < kFilterVectors && line < g.lines; ++count) {
      const int64_t at = line * g.columns + column;
      vectors[count] = {g.in + line * g.line_step + column * g.step, g.out + at, all - at};
      if (column == last) {
        column = 0, ++line;
      } else {
        column = column + W < last ? column + W : last;
      }
    }
    switch (count) {
      case 1:
        filter_bytes_block<Dot, 1>(g, vectors);
        break;
      case 2:
        filter_bytes_block<Dot, 2>(g, vectors);
        break;
      case 3:
        filter_bytes_block<Dot, 3>(g, vectors);
        break;
      default:
        filter_bytes_block<Dot, 4>(g, vectors);
    }
  }
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
