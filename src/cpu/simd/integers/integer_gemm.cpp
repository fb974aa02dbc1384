// Integer products by sums of pairs of 16-bit products (pmaddwd), which every x86 has, and the list
// of the kernels of an instruction set. Two products of 9-bit numbers cannot overflow. The panels
// stay bytes until they are loaded: few rows take as long as the panels' way from memory.
#include <type_traits>

#include "cpu/simd/activation.h"
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
                                         interleave_channels<2>,
                                         nullptr};

}  // namespace

void activate_floats(const Activation& activation, int64_t count, float* x) {
  constexpr int64_t kWidth = VectorOf<float>::kWidth;
  const auto whole = static_cast<int>(count / kWidth);
  if (whole > 0) activate_rows(activation, 1, whole, x, 0);
  const int64_t rest = count - whole * kWidth;
  if (rest == 0) return;
  float* last = x + whole * kWidth;
  float part[kWidth] = {};
  store_vector(part, load_part(last, rest));
  activate_rows(activation, 1, 1, part, 0);
  store_part(last, load_vector(part), rest);
}

void add_integer_gemm(KernelTable& table) {
  table.finish_i32 = finish_integers<int32_t>;
  table.finish_f32 = finish_integers<float>;
  table.quantize_words = quantize_words;
  table.scale_integers = scale_integers;
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
