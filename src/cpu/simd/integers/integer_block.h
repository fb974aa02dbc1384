// Register-blocked integer products over packed factors, for any dot product of groups of kGroup
// elements. Sources include it where the instructions of their dot product are switched on, with a
// Dot of their own: no function of it is shared between them. A group of a row is 4 bytes; a panel
// has bytes, which Dot::load makes vectors of.
#pragma once

#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/integers/integer_pack.h"

namespace redfuser::cpu::RF_ISA {
namespace {

typedef uint16_t BytePair __attribute__((aligned(1), may_alias));

// Element j of the channel at `row`, of every element or, with a pair for each j, every other one.
template <int kStep>
RF_INLINE uint32_t channel_byte(const uint8_t* row, int64_t j) {
  if constexpr (kStep == 1) return row[j];
  return reinterpret_cast<const BytePair*>(row)[j] & 0xffu;
}

#if RF_VECTOR_BYTES == 64
// The words of up to 64 positions of four channels, side by side or, by pairs, every other one. The
// permutation puts the bytes of four
// positions into each quarter of a vector, where the unpacking of bytes and then of pairs leaves
// them.
template <int kStep>
RF_INLINE void interleave_four(const uint8_t* const* rows, int64_t first, int64_t count,
                               uint8_t flip, uint32_t* out) {
  constexpr __mmask64 kAll = ~uint64_t{0};
  const __mmask64 some = count < 64 ? (uint64_t{1} << count) - 1 : kAll;
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i flips = _mm512_set1_epi8(static_cast<char>(flip));
  const auto first_of_pairs = [&](int g, int half) {
    const auto pairs = static_cast<__mmask32>(some >> (32 * half));
    return _mm512_maskz_cvtepi16_epi8(
        ~0u, _mm512_maskz_loadu_epi16(pairs, rows[g] + 2 * (first + 32 * half)));
  };
  const auto load = [&](int g) {
    const __m512i bytes =
        kStep == 1 ? _mm512_maskz_loadu_epi8(some, rows[g] + first)
                   : _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(first_of_pairs(g, 0)),
                                              first_of_pairs(g, 1), 1);
    return _mm512_maskz_permutexvar_epi32(0xffff, order, _mm512_xor_si512(bytes, flips));
  };
  const __m512i a = load(0), b = load(1), c = load(2), d = load(3);
  const __m512i ab[] = {_mm512_maskz_unpacklo_epi8(kAll, a, b),
                        _mm512_maskz_unpackhi_epi8(kAll, a, b)};
  const __m512i cd[] = {_mm512_maskz_unpacklo_epi8(kAll, c, d),
                        _mm512_maskz_unpackhi_epi8(kAll, c, d)};
#pragma GCC unroll 4
  for (int part = 0; part < 4; ++part) {
    const __m512i x = ab[part / 2], y = cd[part / 2];
    const __m512i words = part % 2 == 0 ? _mm512_maskz_unpacklo_epi16(~0u, x, y)
                                        : _mm512_maskz_unpackhi_epi16(~0u, x, y);
    const auto lanes = static_cast<__mmask16>(some >> (16 * part));
    if (lanes == 0) return;
    _mm512_mask_storeu_epi32(out + first + 16 * part, lanes, words);
  }
}
#endif

// The words of positions [0, count) of up to kGroup channels.
template <int kGroup, int kStep>
void interleave_steps(const IntegerInterleaveArgs& p, int64_t count, uint32_t* out) {
  constexpr int kBits = 32 / kGroup;
  if (p.channels == kGroup) {
    const uint8_t* rows[kGroup];
    for (int g = 0; g < kGroup; ++g) rows[g] = p.in + g * p.channel_stride;
#if RF_VECTOR_BYTES == 64
    if constexpr (kGroup == 4) {
      for (int64_t j = 0; j < count; j += 64) {
        interleave_four<kStep>(rows, j, count - j, static_cast<uint8_t>(p.flip), out);
      }
      return;
    }
#endif
    RF_INDEPENDENT
    for (int64_t j = 0; j < count; ++j) {
      uint32_t word = 0;
#pragma GCC unroll 4
      for (int g = 0; g < kGroup; ++g)
        word |= (channel_byte<kStep>(rows[g], j) ^ p.flip) << (kBits * g);
      out[j] = word;
    }
    return;
  }
  for (int64_t g = 0; g < p.channels; ++g) {
    const uint8_t* row = p.in + g * p.channel_stride;
    const auto bits = static_cast<int>(kBits * g);
    RF_INDEPENDENT
    for (int64_t j = 0; j < count; ++j) {
      const uint32_t word = (channel_byte<kStep>(row, j) ^ p.flip) << bits;
      out[j] = g == 0 ? word : out[j] | word;
    }
  }
}

// Two channels are words of 16 bits, four are bytes.
template <int kGroup>
void interleave_channels(const IntegerInterleaveArgs& p) {
  constexpr int kBits = 32 / kGroup;
  auto* out = static_cast<uint32_t*>(p.out);
  int64_t done = 0;
  if (p.step == 1) interleave_steps<kGroup, 1>(p, done = p.count, out);
  // The last pair may end beyond the channel.
  if (p.step == 2 && p.count > 1) interleave_steps<kGroup, 2>(p, done = p.count - 1, out);
  for (int64_t j = done; j < p.count; ++j) {
    uint32_t word = 0;
    for (int64_t g = 0; g < p.channels; ++g) {
      const uint8_t byte = p.in[g * p.channel_stride + j * p.step] ^ p.flip;
      word |= static_cast<uint32_t>(byte) << (kBits * g);
    }
    out[j] = word;
  }
  if (!p.sums) return;
  RF_INDEPENDENT
  for (int64_t j = 0; j < p.count; ++j) {
    uint32_t sum = 0;
#pragma GCC unroll 4
    for (int g = 0; g < kGroup; ++g) sum += static_cast<uint8_t>(out[j] >> (kBits * g));
    p.sums[j] = static_cast<int32_t>(static_cast<uint32_t>(p.sums[j]) + sum);
  }
}

// C[MR, NV vectors] = A[MR, depth] · panel, or, with `offsets`, columns of IntegerMultiplyArgs::b.
template <class Dot, bool kLeftSigned, bool kOffsets, int MR, int NV>
void integer_block(int64_t groups, const char* a, int64_t a_stride, const char* panel,
                   const int64_t* offsets, const int32_t* starts, int32_t* c, int64_t c_stride) {
  constexpr int kGroup = 4 / sizeof(typename Dot::Left);
  using V = Vector<int32_t>;
  V sum[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) sum[i][j] = (starts ? starts[i] : 0) - V{};
  for (int64_t p = 0; p < groups; ++p) {
    const char* b = panel + (kOffsets ? offsets[p] : p * (kGroup * kIntegerPanel));
    V right[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j)
      right[j] = kOffsets ? load_vector(reinterpret_cast<const int32_t*>(b) + j * kIntegers)
                          : Dot::template load<kLeftSigned>(b + j * kIntegers * kGroup);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      int32_t group;
      __builtin_memcpy(&group, a + i * a_stride, sizeof(group));
      const V left = group - V{};
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j)
        sum[i][j] = Dot::template add<kLeftSigned>(sum[i][j], left, right[j]);
    }
    a += 4;
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) store_vector(c + i * c_stride + j * kIntegers, sum[i][j]);
}

// One row by kRowPanels panels, which share the loads of the row.
constexpr int kRowPanels = 4;
template <class Dot, bool kLeftSigned>
void integer_row(int64_t groups, const char* a, const char* b, int32_t start, int32_t* c) {
  constexpr int kGroup = 4 / sizeof(typename Dot::Left);
  using V = Vector<int32_t>;
  const int64_t panel = groups * kGroup * kIntegerPanel;
  V sum[kRowPanels][kBlockVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRowPanels; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < kBlockVectors; ++j) sum[i][j] = start - V{};
  for (int64_t p = 0; p < groups; ++p, a += 4, b += kGroup * kIntegerPanel) {
    int32_t group;
    __builtin_memcpy(&group, a, sizeof(group));
    const V left = group - V{};
#pragma GCC unroll 16
    for (int i = 0; i < kRowPanels; ++i)
#pragma GCC unroll 16
      for (int j = 0; j < kBlockVectors; ++j)
        sum[i][j] = Dot::template add<kLeftSigned>(
            sum[i][j], left,
            Dot::template load<kLeftSigned>(b + i * panel + j * kIntegers * kGroup));
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRowPanels; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < kBlockVectors; ++j)
      store_vector(c + i * kIntegerPanel + j * kIntegers, sum[i][j]);
}

template <class Dot>
concept Splits = Dot::kSplit;

// Adds to C[rows, NV vectors] the products of the rests of the rows, or of the panel. `line` is the
// first row, or the number of the panel.
template <class Dot, bool kLeftSigned, bool kOffsets, int NV>
void add_rests(const IntegerRests& rests, int64_t line, int64_t rows, const char* a,
               int64_t a_stride, const char* panel, const int64_t* offsets, int32_t* c,
               int64_t c_stride) {
  constexpr int kGroup = 4 / sizeof(typename Dot::Left);
  using V = Vector<int32_t>;
  for (int64_t i = 0; i < rows; ++i, a += a_stride, c += c_stride) {
    const int64_t of = kLeftSigned ? line + i : line;
    const int64_t begin = rests.begins[of], end = rests.begins[of + 1];
    if (begin == end) continue;
    V sum[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) sum[j] = load_vector(c + j * kIntegers);
    for (int64_t e = begin; e < end; ++e) {
      const int64_t group = rests.groups[e];
      const char* b = panel + (kOffsets ? offsets[group] : group * (kGroup * kIntegerPanel));
      int32_t word;
      const void* from = kLeftSigned ? static_cast<const void*>(rests.words + e) : a + group * 4;
      __builtin_memcpy(&word, from, sizeof(word));
      const V left = word - V{};
      const auto* right = kLeftSigned
                              ? reinterpret_cast<const int32_t*>(b)
                              : reinterpret_cast<const int32_t*>(rests.words) + e * kIntegerPanel;
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j)
        sum[j] = Dot::template add<kLeftSigned>(sum[j], left, load_vector(right + j * kIntegers));
    }
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) store_vector(c + j * kIntegers, sum[j]);
  }
}

using IntegerBlockFn = void (*)(int64_t, const char*, int64_t, const char*, const int64_t*,
                                const int32_t*, int32_t*, int64_t);

template <class Dot, bool kLeftSigned, bool kOffsets, int NV, int MR = kBlockRows>
IntegerBlockFn integer_block_of(int64_t rows) {
  if constexpr (MR > 1) {
    if (rows < MR) return integer_block_of<Dot, kLeftSigned, kOffsets, NV, MR - 1>(rows);
  }
  return integer_block<Dot, kLeftSigned, kOffsets, MR, NV>;
}

template <class Dot, bool kLeftSigned, bool kOffsets>
void multiply_signed(const IntegerMultiplyArgs& g) {
  constexpr int64_t kGroup = 4 / sizeof(typename Dot::Left);
  const char* b = static_cast<const char*>(g.b);
  const int64_t step = kIntegerPanel * (kOffsets ? 4 : g.depth);
  int64_t j = 0;
  if (!kOffsets && g.m == 1) {
    for (; j + kRowPanels * kIntegerPanel <= g.n; j += kRowPanels * kIntegerPanel) {
      integer_row<Dot, kLeftSigned>(g.depth / kGroup, static_cast<const char*>(g.a), b,
                                    g.starts ? g.starts[0] : 0, g.c + j);
      if constexpr (Splits<Dot>) {
        if (g.rests.begins) {
          for (int64_t p = 0; p < kRowPanels; ++p) {
            const int64_t at = j + p * kIntegerPanel;
            add_rests<Dot, kLeftSigned, false, kBlockVectors>(
                g.rests, kLeftSigned ? 0 : at / kIntegerPanel, 1, static_cast<const char*>(g.a), 0,
                b + p * step, nullptr, g.c + at, 0);
          }
        }
      }
      b += kRowPanels * step;
    }
  }
  for (; j < g.n; j += kIntegerPanel, b += step) {
    const bool two = g.n - j > kIntegers;
    for (int64_t i = 0; i < g.m; i += kBlockRows) {
      const IntegerBlockFn block = two ? integer_block_of<Dot, kLeftSigned, kOffsets, 2>(g.m - i)
                                       : integer_block_of<Dot, kLeftSigned, kOffsets, 1>(g.m - i);
      block(g.depth / kGroup, static_cast<const char*>(g.a) + i * g.a_stride, g.a_stride, b,
            g.group_offsets, g.starts ? g.starts + i : nullptr, g.c + i * g.c_stride + j,
            g.c_stride);
    }
    if constexpr (Splits<Dot>) {
      if (!g.rests.begins) continue;
      const auto add =
          two ? add_rests<Dot, kLeftSigned, kOffsets, 2> : add_rests<Dot, kLeftSigned, kOffsets, 1>;
      add(g.rests, kLeftSigned ? 0 : j / kIntegerPanel, g.m, static_cast<const char*>(g.a),
          g.a_stride, b, g.group_offsets, g.c + j, g.c_stride);
    }
  }
}

template <class Dot>
void multiply_integers(const IntegerMultiplyArgs& g) {
  if (g.group_offsets) {
    return g.left_signed ? multiply_signed<Dot, true, true>(g)
                         : multiply_signed<Dot, false, true>(g);
  }
  return g.left_signed ? multiply_signed<Dot, true, false>(g)
                       : multiply_signed<Dot, false, false>(g);
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
