// Floats that become 8-bit integers, four vectors at a time.
#pragma once

#include "cpu/simd/isa.h"

#if defined(__x86_64__)
#include <immintrin.h>

namespace redfuser::cpu::RF_ISA {
namespace {

using Ints = Vector<int32_t>;
using Floats = Vector<float>;
constexpr int64_t kLanes = VectorOf<int32_t>::kWidth, kGroup = 4 * kLanes;

#if RF_VECTOR_BYTES == 64
constexpr __mmask16 kAll = 0xffff;  // GCC 12 warns of forms without a mask
RF_INLINE Ints nearest(Floats x) { return (Ints)_mm512_maskz_cvtps_epi32(kAll, (__m512)x); }
// x less the whole number nearest to it, r.
RF_INLINE Floats beyond(Floats x, Ints /*r*/) {
  constexpr int kNearest = 0b1000;  // without exceptions
  return (Floats)_mm512_maskz_reduce_ps(kAll, (__m512)x, kNearest);
}
// Of magnitudes; not of NaN.
RF_INLINE Floats larger_magnitude(Floats most, Floats x) {
  constexpr int kAbsoluteMax = 0b1011;  // without a sign
  return (Floats)_mm512_maskz_range_ps(kAll, (__m512)most, (__m512)x, kAbsoluteMax);
}
// Not a number is above all.
RF_INLINE bool any_above(Floats x, float most) {
  return _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(most), _CMP_NLE_UQ) != 0;
}
// Of two vectors, in the order of parts of 16 bytes.
RF_INLINE __m512i pack_words(Ints a, Ints b) { return _mm512_packs_epi32((__m512i)a, (__m512i)b); }
RF_INLINE __m512i bounded_words(__m512i x, int zero, int low, int high) {
  constexpr __mmask32 kWords = ~__mmask32{0};
  const auto all = [](int each) { return _mm512_set1_epi16(static_cast<int16_t>(each)); };
  x = _mm512_adds_epi16(x, all(zero));
  return _mm512_maskz_min_epi16(kWords, _mm512_maskz_max_epi16(kWords, x, all(low)), all(high));
}
RF_INLINE void store_bytes(bool is_signed, __m512i a, __m512i b, uint8_t* out) {
  const __m512i bytes = is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  _mm512_storeu_si512(out, _mm512_maskz_permutexvar_epi32(kAll, order, bytes));
}
#elif RF_VECTOR_BYTES == 32
RF_INLINE Ints nearest(Floats x) { return (Ints)_mm256_cvtps_epi32((__m256)x); }
RF_INLINE Floats larger_magnitude(Floats most, Floats x) {
  const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), (__m256)x);
  return (Floats)_mm256_max_ps((__m256)most, magnitude);
}
RF_INLINE bool any_above(Floats x, float most) {
  return _mm256_movemask_ps(_mm256_cmp_ps((__m256)x, _mm256_set1_ps(most), _CMP_NLE_UQ)) != 0;
}
RF_INLINE __m256i pack_words(Ints a, Ints b) { return _mm256_packs_epi32((__m256i)a, (__m256i)b); }
RF_INLINE __m256i bounded_words(__m256i x, int zero, int low, int high) {
  const auto all = [](int each) { return _mm256_set1_epi16(static_cast<int16_t>(each)); };
  x = _mm256_adds_epi16(x, all(zero));
  return _mm256_min_epi16(_mm256_max_epi16(x, all(low)), all(high));
}
RF_INLINE void store_bytes(bool is_signed, __m256i a, __m256i b, uint8_t* out) {
  const __m256i bytes = is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
  const __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permutevar8x32_epi32(bytes, order));
}
#else
RF_INLINE Ints nearest(Floats x) { return (Ints)_mm_cvtps_epi32((__m128)x); }
RF_INLINE Floats larger_magnitude(Floats most, Floats x) {
  const __m128 magnitude = _mm_andnot_ps(_mm_set1_ps(-0.0f), (__m128)x);
  return (Floats)_mm_max_ps((__m128)most, magnitude);
}
RF_INLINE bool any_above(Floats x, float most) {
  return _mm_movemask_ps(_mm_cmpnle_ps((__m128)x, _mm_set1_ps(most))) != 0;
}
RF_INLINE __m128i pack_words(Ints a, Ints b) { return _mm_packs_epi32((__m128i)a, (__m128i)b); }
RF_INLINE __m128i bounded_words(__m128i x, int zero, int low, int high) {
  const auto all = [](int each) { return _mm_set1_epi16(static_cast<int16_t>(each)); };
  x = _mm_adds_epi16(x, all(zero));
  return _mm_min_epi16(_mm_max_epi16(x, all(low)), all(high));
}
RF_INLINE void store_bytes(bool is_signed, __m128i a, __m128i b, uint8_t* out) {
  const __m128i bytes = is_signed ? _mm_packs_epi16(a, b) : _mm_packus_epi16(a, b);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
}
#endif

#if RF_VECTOR_BYTES != 64
RF_INLINE Floats beyond(Floats x, Ints r) { return x - __builtin_convertvector(r, Floats); }
#endif

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
#endif
