// Integer products by dot products of four bytes, which add to int32 without saturation.
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/isa.h"

#if RF_VECTOR_BYTES >= 32
#include <cpuid.h>
#include <immintrin.h>

#if defined(__clang__)
#if RF_VECTOR_BYTES == 64
#pragma clang attribute push(__attribute__((target("avx512vnni"))), apply_to = function)
#else
#pragma clang attribute push(__attribute__((target("avxvnni"))), apply_to = function)
#endif
#else
#pragma GCC push_options
#if RF_VECTOR_BYTES == 64
#pragma GCC target("avx512vnni")
#else
#pragma GCC target("avxvnni")
#endif
#endif

#include "cpu/simd/integers/byte_filter_block.h"
#include "cpu/simd/integers/integer_block.h"
#include "cpu/simd/integers/integer_positions.h"

namespace redfuser::cpu::RF_ISA {
namespace {

struct ByteDot {
  using Left = uint8_t;
  static constexpr int64_t kDepth = 4;

  template <bool kLeftSigned>
  static RF_INLINE Vector<int32_t> load(const char* panel) {
    return load_vector(reinterpret_cast<const int32_t*>(panel));
  }

  // The instruction's second operand is unsigned, its third signed.
  template <bool kLeftSigned>
  static RF_INLINE Vector<int32_t> add(Vector<int32_t> sum, Vector<int32_t> left,
                                       Vector<int32_t> right) {
    const Vector<int32_t> bytes = kLeftSigned ? right : left, others = kLeftSigned ? left : right;
#if RF_VECTOR_BYTES == 64
    return (Vector<int32_t>)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)bytes, (__m512i)others);
#else
    return (Vector<int32_t>)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)bytes, (__m256i)others);
#endif
  }
};

void multiply_bytes(const IntegerMultiplyArgs& g) { multiply_integers<ByteDot>(g); }
void pack_byte_rows(const IntegerPackArgs& p) { pack_rows_of<ByteDot>(p); }
void interleave_bytes(const IntegerInterleaveArgs& p) { interleave_channels<4>(p); }
void pack_byte_columns(const IntegerPackArgs& p) { pack_columns_of<ByteDot>(p); }
void sum_byte_positions(const IntegerPositionsArgs& p) { sum_positions<ByteDot>(p); }
void filter_by_dots(const ByteFilterArgs& g) { filter_bytes<ByteDot>(g); }

}  // namespace
}  // namespace redfuser::cpu::RF_ISA

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#if RF_VECTOR_BYTES == 64
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512vbmi,avx512vnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512vbmi,avx512vnni")
#endif

#include "cpu/simd/integers/byte_vectors_block.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

namespace redfuser::cpu::RF_ISA {
namespace {

bool has_dots() {
#if RF_VECTOR_BYTES == 64
  return __builtin_cpu_supports("avx512vnni");
#else
  // AVX-VNNI is bit 4 of leaf 7.1's EAX.
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;
#endif
}

constexpr IntegerKernels kKernels = {RF_ISA_NAME " vpdpbusd", has_dots,          1,
                                     ByteDot::kDepth,         kIntegerPanel,     pack_byte_rows,
                                     pack_byte_columns,       multiply_bytes,    quantize_integers,
                                     interleave_bytes,        sum_byte_positions};

constexpr ByteFilterKernel kFilter = {filter_by_dots, false, nullptr};
#if RF_VECTOR_BYTES == 64
constexpr ByteFilterKernel kVectorFilter = {filter_by_dots, false, filter_vectors};
#endif

}  // namespace

const IntegerKernels* dot_kernels() { return &kKernels; }
const ByteFilterKernel* dot_filter() {
#if RF_VECTOR_BYTES == 64
  if (__builtin_cpu_supports("avx512vbmi")) return &kVectorFilter;
#endif
  return &kFilter;
}
void multiply_by_dots(const IntegerMultiplyArgs& args) { multiply_bytes(args); }

}  // namespace redfuser::cpu::RF_ISA
#else
namespace redfuser::cpu::RF_ISA {
const IntegerKernels* dot_kernels() { return nullptr; }
const ByteFilterKernel* dot_filter() { return nullptr; }
}  // namespace redfuser::cpu::RF_ISA
#endif
