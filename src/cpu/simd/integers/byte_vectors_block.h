// The kernel of byte_vectors.h by AVX512-VBMI's permutations and AVX512-VNNI's dot products,
// included where both are switched on.
#pragma once

#include "cpu/simd/integers/byte_vectors.h"
#include "cpu/simd/isa.h"

namespace redfuser::cpu::RF_ISA {
namespace {

// 64 bytes, or 32 where patterns reach no further: fewer of these lie in two cache lines.
template <bool kNear>
RF_INLINE __m512i load_bytes(const uint8_t* from) {
  if constexpr (!kNear) return _mm512_loadu_si512(from);
  return _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}

// The filters share the loads of masks and patterns. kGroups: the number of groups, whose words
// stay in registers; or 0 for any number, of any number of rounds.
template <bool kFlip, bool kNear, int kGroups>
void filter_each(const ByteVectorsArgs& g) {
  constexpr int F = ByteVectorsArgs::kFilters;
  const __m512i padding = _mm512_set1_epi8(static_cast<char>(g.padding));
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(g.flip));
  const uint8_t* in[F];
  int32_t* out[F];
  __m512i start[F], sum[F];
#pragma GCC unroll 4
  for (int f = 0; f < F; ++f) {
    in[f] = g.in[f], out[f] = g.out[f];
    start[f] = _mm512_set1_epi32(g.starts[f]);
  }
  const auto word = [&](int64_t k, int f) {
    return _mm512_set1_epi32(static_cast<int32_t>(g.words[k * F + f]));
  };
  __m512i words[kGroups == 0 ? 1 : kGroups * F];
  if constexpr (kGroups != 0) {
#pragma GCC unroll 12
    for (int i = 0; i < kGroups * F; ++i) words[i] = word(i / F, i % F);
  }
  const ByteVectorTaps* taps = g.taps;
  const BytePattern* patterns = g.patterns;
  [[maybe_unused]] const int64_t rounds = g.rounds;
  const auto add = [&](int64_t k, const __m512i* by) {
    const __m512i pattern = _mm512_loadu_si512(patterns + taps[k].pattern);
    const __mmask64 inside = taps[k].inside;
    const int64_t offset = taps[k].offset;
#pragma GCC unroll 4
    for (int f = 0; f < F; ++f) {
      __m512i bytes =
          _mm512_mask_permutexvar_epi8(padding, inside, pattern, load_bytes<kNear>(in[f] + offset));
      if (kFlip) bytes = _mm512_xor_si512(bytes, flip);
      sum[f] = _mm512_dpbusd_epi32(sum[f], bytes, by == nullptr ? word(k, f) : by[f]);
      if constexpr (kGroups == 0) {
        for (int64_t r = 1; r < rounds; ++r) {
          const uint32_t more = g.words[r * g.round + k * F + f];
          sum[f] =
              _mm512_dpbusd_epi32(sum[f], bytes, _mm512_set1_epi32(static_cast<int32_t>(more)));
        }
      }
    }
  };
  const ByteVector *to = g.vectors, *const end = to + g.count;
  for (; to != end; ++to) {
#pragma GCC unroll 4
    for (int f = 0; f < F; ++f) sum[f] = start[f];
    if constexpr (kGroups != 0) {
#pragma GCC unroll 3
      for (int k = 0; k < kGroups; ++k) add(k, words + k * F);
      taps += kGroups;
    } else {
      for (int64_t k = 0; k < g.groups; ++k) add(k, nullptr);
      taps += g.groups;
    }
    const auto lanes = static_cast<__mmask16>((1u << to->count) - 1);
#pragma GCC unroll 4
    for (int f = 0; f < F; ++f) _mm512_mask_storeu_epi32(out[f] + to->first, lanes, sum[f]);
  }
}

template <bool kFlip, bool kNear>
void filter_groups(const ByteVectorsArgs& g) {
  g.groups == 3 && g.rounds == 1 ? filter_each<kFlip, kNear, 3>(g)
                                 : filter_each<kFlip, kNear, 0>(g);
}

void filter_vectors(const ByteVectorsArgs& g) {
  if (g.reach < 32)
    return g.flip == 0 ? filter_groups<false, true>(g) : filter_groups<true, true>(g);
  g.flip == 0 ? filter_groups<false, false>(g) : filter_groups<true, false>(g);
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
