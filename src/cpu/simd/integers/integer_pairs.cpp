// Integer products by sums of pairs of products of bytes (pmaddubsw), which saturate at 16 bits: of
// factors that split_pairs has split, they are exact.
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/isa.h"

#if RF_VECTOR_BYTES >= 32
#include <immintrin.h>

#include "cpu/simd/integers/byte_filter_block.h"
#include "cpu/simd/integers/integer_block.h"

namespace redfuser::cpu::RF_ISA {
namespace {

struct BytePairDot {
  using Left = uint8_t;
  static constexpr int64_t kDepth = 4;
  static constexpr bool kSplit = true;

  template <bool kLeftSigned>
  static RF_INLINE Vector<int32_t> load(const char* panel) {
    return load_vector(reinterpret_cast<const int32_t*>(panel));
  }

  // The first operand of the products of bytes is unsigned, the second signed.
  template <bool kLeftSigned>
  static RF_INLINE Vector<int32_t> add(Vector<int32_t> sum, Vector<int32_t> left,
                                       Vector<int32_t> right) {
    using U = Vector<uint32_t>;
    const Vector<int32_t> bytes = kLeftSigned ? right : left, others = kLeftSigned ? left : right;
#if RF_VECTOR_BYTES == 64
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)bytes, (__m512i)others);
    return (Vector<int32_t>)((U)sum + (U)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#else
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)bytes, (__m256i)others);
    return (Vector<int32_t>)((U)sum + (U)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
  }
};

bool always() { return true; }

constexpr IntegerKernels kKernels = {RF_ISA_NAME " pmaddubsw",
                                     always,
                                     1,
                                     BytePairDot::kDepth,
                                     kIntegerPanel,
                                     pack_rows_of<BytePairDot>,
                                     pack_columns_of<BytePairDot>,
                                     multiply_integers<BytePairDot>,
                                     quantize_integers,
                                     interleave_channels<4>,
                                     nullptr};

constexpr ByteFilterKernel kFilter = {filter_bytes<BytePairDot>, true, nullptr};

}  // namespace

const IntegerKernels* pair_kernels() { return &kKernels; }
const ByteFilterKernel* pair_filter() { return &kFilter; }

}  // namespace redfuser::cpu::RF_ISA
#else
namespace redfuser::cpu::RF_ISA {
const IntegerKernels* pair_kernels() { return nullptr; }
const ByteFilterKernel* pair_filter() { return nullptr; }
}  // namespace redfuser::cpu::RF_ISA
#endif
