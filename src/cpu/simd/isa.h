// Included first by every kernel source. RF_ISA is the namespace of the instruction set that the
// source is being compiled for. Nothing here may instantiate a template of the standard library:
// the linker would be free to keep the copy that was compiled for the newest instruction set.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>

#include "cpu/simd/kernel_table.h"

#ifndef RF_ISA
#define RF_ISA baseline
#define RF_ISA_NAME "baseline"
#endif

#if defined(__AVX512F__)
#define RF_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define RF_VECTOR_BYTES 32
#else
#define RF_VECTOR_BYTES 16
#endif

#define RF_INLINE inline __attribute__((always_inline))
// The iterations of an elementwise loop are independent even where output and operand coincide.
#if defined(__clang__)
#define RF_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RF_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace redfuser::cpu::RF_ISA {

template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(RF_VECTOR_BYTES)));
  static constexpr int kWidth = RF_VECTOR_BYTES / sizeof(T);
};
template <class T>
using Vector = typename VectorOf<T>::Type;

template <class T>
RF_INLINE Vector<T> load_vector(const T* from) {
  Vector<T> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <class T>
RF_INLINE void store_vector(T* to, Vector<T> v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

// The first elements of a vector, fewer than it has; the others are 0.
template <class T>
RF_INLINE Vector<T> load_part(const T* from, int64_t count) {
  Vector<T> v{};
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    const __m512i x = _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << count) - 1), from);
    __builtin_memcpy(&v, &x, sizeof(v));
    return v;
  }
#endif
  for (int64_t i = 0; i < count; ++i) v[i] = from[i];
  return v;
}
template <class T>
RF_INLINE void store_part(T* to, Vector<T> v, int64_t count) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    __m512i x;
    __builtin_memcpy(&x, &v, sizeof(v));
    return _mm512_mask_storeu_epi32(to, static_cast<__mmask16>((1u << count) - 1), x);
  }
#endif
  for (int64_t i = 0; i < count; ++i) to[i] = v[i];
}

template <class T>
RF_INLINE const T* row_of(const Operand& a, int64_t row) {
  return static_cast<const T*>(a.data) + (a.offsets ? a.offsets[row] : row * a.stride);
}

// Each file of kernels fills its part of the table.
void add_unary_float(KernelTable& table);
void add_unary_double(KernelTable& table);
void add_unary_integer(KernelTable& table);
void add_binary(KernelTable& table);
void add_chain(KernelTable& table);
void add_select(KernelTable& table);
void add_reduce(KernelTable& table);
void add_convert(KernelTable& table);
void add_moves(KernelTable& table);
void add_gathers(KernelTable& table);
void add_byte_tables(KernelTable& table);
void add_rank(KernelTable& table);
void add_running(KernelTable& table);
void add_gemm(KernelTable& table);
void add_integer_gemm(KernelTable& table);
void add_filter(KernelTable& table);
void add_window(KernelTable& table);
void add_window_rows(KernelTable& table);
void add_overlap(KernelTable& table);
void add_pool(KernelTable& table);
void add_weighted_rows(KernelTable& table);
void add_lanes(KernelTable& table);
void add_recurrent(KernelTable& table);
void add_fourier(KernelTable& table);

// Functions of chains in place, of whole vectors: they round as their kernels do.
void erf_in_place(float* x, int64_t vectors);
void tanh_in_place(float* x, int64_t vectors);

// The kernels of integer products that need more than their instruction set's own flags: by dot
// products of four bytes (AVX512-VNNI, AVX-VNNI), and by tiles (AMX); null where the set has none.
const IntegerKernels* dot_kernels();
const IntegerKernels* tile_kernels();
// Those by products of bytes whose sums of two saturate; null where the set has none.
const IntegerKernels* pair_kernels();
// Filters of bytes by the dot products of either; null where the set has none.
const ByteFilterKernel* dot_filter();
const ByteFilterKernel* pair_filter();
// The same products without checks, for the few rows of which no tile is worth its configuration.
void multiply_by_dots(const IntegerMultiplyArgs& args);
// IntegerKernels::quantize of the set, and KernelTable::quantize_words.
void quantize_integers(const IntegerQuantizeArgs& args);
void quantize_words(const IntegerQuantizeArgs& args);
// KernelTable::scale_integers.
void scale_integers(const IntegerScaleArgs& args);
// x = the activation of x, whose exponentials may be contracted.
void activate_floats(const Activation& activation, int64_t count, float* x);

}  // namespace redfuser::cpu::RF_ISA
