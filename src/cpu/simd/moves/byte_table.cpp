// Lookups in tables of bytes' values: one by one, or by AVX512-VBMI's permutations of 128 bytes,
// two of which hold a table's byte. The four vectors of indices are packed lane by lane, and their
// results unpacked in the opposite order.
#include "cpu/simd/byte_table.h"

#include "cpu/simd/isa.h"

#if RF_VECTOR_BYTES == 64
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512vbmi"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512vbmi")
#endif

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr int64_t kPart = 64;
constexpr __mmask64 kBytes = ~__mmask64{0};  // GCC 12 warns of forms without a mask

// Of 256 bytes.
class Plane {
 public:
  explicit Plane(const uint8_t* from) {
    for (int i = 0; i < 4; ++i) parts_[i] = _mm512_loadu_si512(from + i * kPart);
  }
  RF_INLINE __m512i at(__m512i index) const {
    const __m512i low = _mm512_maskz_permutex2var_epi8(kBytes, parts_[0], index, parts_[1]);
    const __m512i high = _mm512_maskz_permutex2var_epi8(kBytes, parts_[2], index, parts_[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
  }

 private:
  __m512i parts_[4];
};

// The first `count` elements of a part, at most all.
RF_INLINE __mmask64 first(int64_t count) {
  return count >= kPart ? kBytes : (__mmask64{1} << count) - 1;
}

void map_by_permutations(int64_t count, const uint8_t* in, const uint8_t* table, uint8_t* out) {
  const Plane plane(table);
  for (int64_t i = 0; i < count; i += kPart) {
    const __mmask64 mask = first(count - i);
    _mm512_mask_storeu_epi8(out + i, mask, plane.at(_mm512_maskz_loadu_epi8(mask, in + i)));
  }
}

RF_INLINE void store_words(uint32_t* out, __mmask64 mask, __m512i words[4]) {
  for (int v = 0; v < 4; ++v)
    _mm512_mask_storeu_epi32(out + 16 * v, static_cast<__mmask16>(mask >> (16 * v)), words[v]);
}

// Words of which `low` and `high` have the lower and the upper half.
RF_INLINE void unpack_words(__m512i low[2], __m512i high[2], __m512i words[4]) {
  for (int i = 0; i < 2; ++i) {
    words[2 * i] = _mm512_maskz_unpacklo_epi16(~__mmask32{0}, low[i], high[i]);
    words[2 * i + 1] = _mm512_maskz_unpackhi_epi16(~__mmask32{0}, low[i], high[i]);
  }
}

template <bool kOneByte>
void look_up_by_permutations(const ByteTable& table, int64_t count, const int32_t* in,
                             uint32_t* out) {
  const Plane planes[4] = {Plane(table.planes[0]), Plane(table.planes[1]), Plane(table.planes[2]),
                           Plane(table.planes[3])};
  const auto lowest = static_cast<int32_t>(table.lowest);
  for (int64_t i = 0; i < count; i += kPart) {
    const __mmask64 mask = first(count - i);
    __m512i x[4];
    for (int v = 0; v < 4; ++v) {
      const auto lanes = static_cast<__mmask16>(mask >> (16 * v));
      const auto word = (Vector<int32_t>)_mm512_maskz_loadu_epi32(lanes, in + i + 16 * v);
      x[v] = (__m512i)(word - lowest);
    }
    const __m512i index =
        _mm512_packus_epi16(_mm512_packs_epi32(x[0], x[1]), _mm512_packs_epi32(x[2], x[3]));
    const __m512i zero = _mm512_setzero_si512();
    const auto plane = [&](int p) { return kOneByte && p > 0 ? zero : planes[p].at(index); };
    __m512i low[2], high[2], words[4];
    const __m512i first_plane = plane(0), second = plane(1), third = plane(2), fourth = plane(3);
    low[0] = _mm512_maskz_unpacklo_epi8(kBytes, first_plane, second);
    low[1] = _mm512_maskz_unpackhi_epi8(kBytes, first_plane, second);
    high[0] = _mm512_maskz_unpacklo_epi8(kBytes, third, fourth);
    high[1] = _mm512_maskz_unpackhi_epi8(kBytes, third, fourth);
    unpack_words(low, high, words);
    store_words(out + i, mask, words);
  }
}

void look_up_words(const ByteTable& table, int64_t count, const int32_t* in, uint32_t* out) {
  table.bytes ? look_up_by_permutations<true>(table, count, in, out)
              : look_up_by_permutations<false>(table, count, in, out);
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

namespace redfuser::cpu::RF_ISA {
namespace {

// All loads of a part come before its stores, for which they do not wait.
void look_up(const ByteTable& table, int64_t count, const int32_t* in, uint32_t* out) {
  constexpr int kFew = 8;
  const uint32_t* const elements = table.elements - table.lowest;
  int64_t i = 0;
  for (; i + kFew <= count; i += kFew) {
    uint32_t part[kFew];
#pragma GCC unroll 8
    for (int j = 0; j < kFew; ++j) part[j] = elements[in[i + j]];
    __builtin_memcpy(out + i, part, sizeof(part));
  }
  for (; i < count; ++i) out[i] = elements[in[i]];
}

void map_bytes(int64_t count, const uint8_t* in, const uint8_t* table, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

}  // namespace

void add_byte_tables(KernelTable& table) {
  table.look_up = look_up;
  table.map_bytes = map_bytes;
#if RF_VECTOR_BYTES == 64
  if (!__builtin_cpu_supports("avx512vbmi")) return;
  table.look_up = look_up_words;
  table.map_bytes = map_by_permutations;
#endif
}

}  // namespace redfuser::cpu::RF_ISA
