// Integer products by sums of pairs of 16-bit products (pmaddwd), which every x86 has, and the list
// of the kernels of an instruction set. Two products of 9-bit numbers cannot overflow. The panels
// stay bytes until they are loaded: few rows take as long as the panels' way from memory.
#include <type_traits>

#include "cpu/simd/integers/byte_filter.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/isa.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu/simd/integers/integer_block.h"

namespace redfuser::cpu::RF_ISA {
namespace {

struct PairDot {
  using Left = int16_t;
  static constexpr int64_t kDepth = 2;

  template <bool kLeftSigned>
  static RF_INLINE Vector<int32_t> load(const char* panel) {
    using Byte = std::conditional_t<kLeftSigned, uint8_t, int8_t>;
    typedef Byte Bytes __attribute__((vector_size(RF_VECTOR_BYTES / 2)));
    Bytes bytes;
    __builtin_memcpy(&bytes, panel, sizeof(bytes));
    return (Vector<int32_t>)__builtin_convertvector(bytes, Vector<int16_t>);
  }

  template <bool kLeftSigned>
  static RF_INLINE Vector<int32_t> add(Vector<int32_t> sum, Vector<int32_t> left,
                                       Vector<int32_t> right) {
    using U = Vector<uint32_t>;
#if RF_VECTOR_BYTES == 64
    return (Vector<int32_t>)((U)sum + (U)_mm512_madd_epi16((__m512i)left, (__m512i)right));
#elif RF_VECTOR_BYTES == 32
    return (Vector<int32_t>)((U)sum + (U)_mm256_madd_epi16((__m256i)left, (__m256i)right));
#elif defined(__x86_64__)
    return (Vector<int32_t>)((U)sum + (U)_mm_madd_epi16((__m128i)left, (__m128i)right));
#else
    const Vector<int32_t> low = ((left << 16) >> 16) * ((right << 16) >> 16);
    return (Vector<int32_t>)((U)sum + (U)(low + (left >> 16) * (right >> 16)));
#endif
  }
};

template <class T, bool kRows, bool kColumns>
void finish(const IntegerFinishArgs& f) {
  for (int64_t i = 0; i < f.rows; ++i) {
    const int32_t* c = f.c + i * f.c_stride;
    T* out = static_cast<T*>(f.out) + i * f.out_stride;
    const uint32_t zero = kRows ? static_cast<uint32_t>(f.row_zeros[i]) : 0;
    const uint32_t sum = kColumns ? static_cast<uint32_t>(f.row_sums[i]) : 0;
    RF_INDEPENDENT
    for (int64_t j = 0; j < f.columns; ++j) {
      uint32_t x = static_cast<uint32_t>(c[j]);
      if (kRows) x -= zero * static_cast<uint32_t>(f.column_terms[j]);
      if (kColumns) x -= sum * static_cast<uint32_t>(f.column_zeros[j]);
      out[j] = static_cast<T>(static_cast<int32_t>(x));
    }
  }
}

template <class T>
void finish_integers(const IntegerFinishArgs& f) {
  if (f.row_zeros) return f.column_zeros ? finish<T, true, true>(f) : finish<T, true, false>(f);
  return f.column_zeros ? finish<T, false, true>(f) : finish<T, false, false>(f);
}

void quantize_floats(int64_t count, const float* x, float scale, int32_t zero, uint8_t* out) {
  const float low = -static_cast<float>(zero), high = 255.0f - static_cast<float>(zero);
  RF_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    float v = x[i] / scale;
    v = v > low ? v : low;
    v = v < high ? v : high;
    out[i] = static_cast<uint8_t>(static_cast<int32_t>(__builtin_nearbyintf(v)) + zero);
  }
}

void add_scaled(int64_t count, const int32_t* c, float scale, const float* scales, float* out) {
  RF_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) out[i] += static_cast<float>(c[i]) * (scale * scales[i]);
}

constexpr double kWhole = 6755399441055744.0;  // 1.5 · 2^52

#if RF_VECTOR_BYTES == 32
// The first elements in groups of 32, where packing with saturation bounds the results; returns
// their number. Sums times a scale of at most 1/4 and the offset are far within 32 bits.
template <class Out>
int64_t quantize_groups(const IntegerQuantizeArgs& q) {
  if constexpr (sizeof(Out) > 1) return 0;
  const bool is_signed = q.low == -128 && q.high == 127;
  const bool is_unsigned = q.low == 0 && q.high == 255;
  const bool small = __builtin_fabs(q.scale) <= 0.25 && __builtin_fabs(q.offset) <= 0x1p28;
  const bool takes = (is_signed || is_unsigned) && small;
  if (!takes || q.zero < -128 || q.zero > 255) return 0;
  auto* out = static_cast<char*>(q.out);
  const __m256d scale = _mm256_set1_pd(q.scale), offset = _mm256_set1_pd(q.offset);
  const __m256d whole = _mm256_set1_pd(kWhole);
  const __m128i bias = _mm_set1_epi32(q.bias);
  const __m256i zero = _mm256_set1_epi32(static_cast<int32_t>(q.zero));
  // The rounded numbers 0, 1, 4, 5, 2, 3, 6, 7 of eight.
  const auto eight = [&](const int32_t* c) {
    const auto four = [&](const int32_t* at) {
      const __m128i sum =
          _mm_add_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)), bias);
      const __m256d x = _mm256_fmadd_pd(_mm256_cvtepi32_pd(sum), scale, offset);
      return _mm256_castpd_ps(_mm256_add_pd(x, whole));
    };
    return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(four(c), four(c + 4), 0x88)),
                            zero);
  };
  int64_t j = 0;
  for (; j + 32 <= q.count; j += 32) {
    const int32_t* c = q.c + j;
    const __m256i first = _mm256_packs_epi32(eight(c), eight(c + 8));
    const __m256i second = _mm256_packs_epi32(eight(c + 16), eight(c + 24));
    const __m256i bytes =
        is_signed ? _mm256_packs_epi16(first, second) : _mm256_packus_epi16(first, second);
    const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j), _mm_unpacklo_epi16(low, high));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j + 16), _mm_unpackhi_epi16(low, high));
  }
  return j;
}
#elif RF_VECTOR_BYTES == 64
// The first elements in groups of 16, the last of which may be a part; returns their number. Sums
// times a scale of at most 1/4 and the offset are far within 32 bits.
template <class Out>
int64_t quantize_groups(const IntegerQuantizeArgs& q) {
  const bool small = __builtin_fabs(q.scale) <= 0.25 && __builtin_fabs(q.offset) <= 0x1p28;
  if (!small || !(__builtin_fabs(q.zero) <= 255)) return 0;
  auto* out = static_cast<Out*>(q.out);
  const __m512d scale = _mm512_set1_pd(q.scale), offset = _mm512_set1_pd(q.offset);
  const __m512d whole = _mm512_set1_pd(kWhole);
  const auto all = [](double x) { return _mm512_set1_epi32(static_cast<int32_t>(x)); };
  const __m256i bias = _mm256_set1_epi32(q.bias);
  const __m512i zero = all(q.zero), least = all(q.low), most = all(q.high);
  const __m512i even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  constexpr __mmask16 kAll = 0xffff;  // GCC 12 warns of forms without a mask
  const auto eight = [&](__m256i c) {
    const auto sums = (__m512d) __builtin_convertvector((__v8si)_mm256_add_epi32(c, bias), __v8df);
    return (__m512i)(_mm512_fmadd_pd(sums, scale, offset) + whole);
  };
  const auto sixteen = [&](__m256i low, __m256i high) {
    const __m512i rounded = _mm512_permutex2var_epi32(eight(low), even, eight(high));
    const __m512i x = _mm512_maskz_min_epi32(kAll, _mm512_add_epi32(rounded, zero), most);
    return _mm512_maskz_max_epi32(kAll, x, least);
  };
  const auto store = [](Out* to, __mmask16 part, __m512i x) {
    if constexpr (sizeof(Out) == 1) {
      _mm_mask_storeu_epi8(to, part, _mm512_maskz_cvtepi32_epi8(kAll, x));
    } else {
      _mm512_mask_storeu_epi32(to, part, x);
    }
  };
  const auto load = [](const int32_t* c) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(c));
  };
  int64_t j = 0;
  for (; j + 16 <= q.count; j += 16) {
    store(out + j, kAll, sixteen(load(q.c + j), load(q.c + j + 8)));
  }
  if (j < q.count) {
    const auto part = static_cast<__mmask16>((1u << (q.count - j)) - 1);
    const __m256i low = _mm256_maskz_loadu_epi32(static_cast<__mmask8>(part), q.c + j);
    const __m256i high = _mm256_maskz_loadu_epi32(static_cast<__mmask8>(part >> 8), q.c + j + 8);
    store(out + j, part, sixteen(low, high));
  }
  return q.count;
}
#else
template <class Out>
int64_t quantize_groups(const IntegerQuantizeArgs&) {
  return 0;
}
#endif

bool always() { return true; }

constexpr IntegerKernels kPairKernels = {RF_ISA_NAME " pmaddwd",
                                         always,
                                         2,
                                         PairDot::kDepth,
                                         kIntegerPanel,
                                         pack_rows_of<PairDot>,
                                         pack_columns_of<PairDot>,
                                         multiply_integers<PairDot>,
                                         quantize_integers,
                                         interleave_channels<2>};

// Bounds are whole numbers, so that they may come before the rounding. The sum with 1.5 · 2^52 is
// rounded to a whole number, which its lowest bits hold.
template <class Out>
void quantize_as(const IntegerQuantizeArgs& args) {
  const IntegerQuantizeArgs q = args;
  auto* out = static_cast<Out*>(q.out);
  const auto bias = static_cast<uint32_t>(q.bias);
  if (q.scale - q.scale == 0 && q.offset - q.offset == 0) {
    const double low = q.low - q.zero, high = q.high - q.zero;
    const auto zero = static_cast<uint32_t>(static_cast<int32_t>(q.zero));
    const int64_t done = quantize_groups<Out>(q);
    RF_INDEPENDENT
    for (int64_t j = done; j < q.count; ++j) {
      const auto sum = static_cast<int32_t>(static_cast<uint32_t>(q.c[j]) + bias);
      double x = sum * q.scale + q.offset;
      x = low > x ? low : x;
      x = high < x ? high : x;
      out[j] =
          static_cast<Out>(static_cast<uint32_t>(__builtin_bit_cast(uint64_t, x + kWhole)) + zero);
    }
    return;
  }
  RF_INDEPENDENT
  for (int64_t j = 0; j < q.count; ++j) {
    const auto sum = static_cast<int32_t>(static_cast<uint32_t>(q.c[j]) + bias);
    double x = sum * q.scale + q.offset;
    x = x == x ? __builtin_nearbyint(x) : 0.0;
    x += q.zero;
    x = x < q.low ? q.low : x;
    x = x > q.high ? q.high : x;
    out[j] = static_cast<Out>(static_cast<int32_t>(x));
  }
}

}  // namespace

void quantize_integers(const IntegerQuantizeArgs& args) { quantize_as<uint8_t>(args); }

void add_integer_gemm(KernelTable& table) {
  table.finish_i32 = finish_integers<int32_t>;
  table.finish_f32 = finish_integers<float>;
  table.quantize_words = quantize_as<int32_t>;
  table.quantize_f32 = quantize_floats;
  table.add_scaled_i32 = add_scaled;
  int count = 0;
  const auto add = [&](const IntegerKernels* kernels) {
    if (kernels && kernels->runs()) table.integer[count++] = kernels;
  };
  add(tile_kernels());
  add(dot_kernels());
  if (count == 0) table.byte_pairs = pair_kernels();
  add(&kPairKernels);
  const IntegerKernels* dots = dot_kernels();
  table.byte_filter = dots && dots->runs() ? dot_filter() : pair_filter();
}

}  // namespace redfuser::cpu::RF_ISA
