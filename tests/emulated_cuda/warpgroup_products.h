// Products of a warpgroup (wgmma) for the host: 64 rows and N columns, of operands that lie in
// shared memory with 128-byte swizzle.
#pragma once

#include "emulated_cuda/copies.h"
#include "emulated_cuda/formats.h"
#include "emulated_cuda/language.h"

namespace emulated {

// Bits 4 to 6 of an address change with bits 7 to 9, of a swizzle of 128 bytes.
inline unsigned swizzled(unsigned address, int mode) {
  const unsigned mask = mode == 3 ? 7 : mode == 2 ? 3 : mode == 1 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

struct GroupProduct {
  float* d;
  const unsigned* registers;  // of a, or null
  unsigned long long a, b;
  bool add;
};
// An element of an operand in shared memory: row of the product, or column, and term. ByTerms: rows
// in memory are of the contracted axis (MN-major).
template <class Format, bool ByTerms>
float operand(unsigned long long descriptor, int row, int k) {
  const auto field = [&](int bit) {
    return static_cast<unsigned>(descriptor >> bit & 0x3fff) << 4;
  };
  const unsigned leading = field(16), groups = field(32);
  if (descriptor >> 62 != 1) std::abort();
  const unsigned address =
      field(0) +
      (ByTerms ? static_cast<unsigned>(row / 64) * leading + static_cast<unsigned>(k / 8) * groups +
                     static_cast<unsigned>(k % 8 * 128 + row % 64 * 2)
               : static_cast<unsigned>(row / 8) * groups +
                     static_cast<unsigned>(row % 8 * 128 + k * 2));
  return Format::get(shared<unsigned short>(swizzled(address, 3)));
}
// One wgmma of `Terms` terms: row_of(product, row, k) of the thread that has the element, if rows
// are in registers, and column_of(descriptor, column, k).
template <int N, int Terms, class RowOf, class ColumnOf>
void multiply_terms(void** operands, int term_threads, const RowOf& row_of,
                    const ColumnOf& column_of) {
  static thread_local float a[64][Terms], b[Terms][N];
  const auto of = [&](int thread) -> const GroupProduct& {
    return *static_cast<GroupProduct*>(operands[thread]);
  };
  for (int k = 0; k < Terms; ++k) {
    for (int row = 0; row < 64; ++row) {
      // Four threads have a row's terms, in turn so many each.
      const int thread = k / term_threads % 4;
      a[row][k] = row_of(of(row / 16 * 32 + row % 8 * 4 + thread), row, k);
    }
    for (int column = 0; column < N; ++column) b[k][column] = column_of(of(0).b, column, k);
  }
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < N; ++column) {
      const GroupProduct& to = of(row / 16 * 32 + row % 8 * 4 + column % 8 / 2);
      float& d = to.d[column / 8 * 4 + row / 8 % 2 * 2 + column % 2];
      float sum = to.add ? d : 0;
      for (int k = 0; k < Terms; ++k) sum += a[row][k] * b[k][column];
      d = sum;
    }
  }
}

template <class Format, int N, bool AByTerms, bool BByTerms>
void multiply_group(void** operands, int) {
  multiply_terms<N, 16>(
      operands, 2,
      [](const GroupProduct& from, int row, int k) {
        return from.registers != nullptr
                   ? part<Format>(from.registers[k / 8 * 2 + row / 8 % 2], k % 2)
                   : operand<Format, AByTerms>(from.a, row, k);
      },
      operand<Format, BByTerms>);
}
template <class Format, int N, bool AByTerms, bool BByTerms>
void run_group(float* d, const unsigned* registers, unsigned long long a, unsigned long long b,
               bool add) {
  GroupProduct own{d, registers, a, b, add};
  host.with_warpgroup(&own, multiply_group<Format, N, AByTerms, BByTerms>);
}

// The address of the term at `byte` of a row that is contiguous along the contracted axis.
inline unsigned place_of_byte(unsigned long long descriptor, int row, int byte) {
  const auto field = [&](int bit) {
    return static_cast<unsigned>(descriptor >> bit & 0x3fff) << 4;
  };
  if (descriptor >> 62 != 1) std::abort();
  return swizzled(field(0) + static_cast<unsigned>(row / 8) * field(32) +
                      static_cast<unsigned>(row % 8 * 128 + byte),
                  3);
}

// 32 terms of E4M3FN.
inline float code(unsigned long long descriptor, int row, int k) {
  return half_to_float(ptx_e4m3_to_half(shared<unsigned char>(place_of_byte(descriptor, row, k))));
}
template <int N>
void multiply_codes(void** operands, int) {
  multiply_terms<N, 32>(
      operands, 8, [](const GroupProduct& from, int row, int k) { return code(from.a, row, k); },
      code);
}

// 8 terms of floats rounded to TF32, with rows in registers.
inline float tf32_column(unsigned long long descriptor, int row, int k) {
  return tf32(shared<unsigned>(place_of_byte(descriptor, row, k * 4)));
}
template <int N>
void multiply_floats(void** operands, int) {
  multiply_terms<N, 8>(
      operands, 1,
      [](const GroupProduct& from, int row, int k) {
        return tf32(from.registers[k / 4 * 2 + row / 8 % 2]);
      },
      tf32_column);
}

template <class T>
struct FormatOf;

}  // namespace emulated

struct half_t;
struct bfloat_t;
template <>
struct emulated::FormatOf<half_t> {
  using Type = Half;
};
template <>
struct emulated::FormatOf<bfloat_t> {
  using Type = Bfloat;
};

#define RF_PRODUCT(T, TYPE, N, M, R0, R1, R2, R3, R4, R5)                                    \
  template <>                                                                                \
  struct Product<T, N> {                                                                     \
    using F = typename emulated::FormatOf<T>::Type;                                          \
    using Descriptor = unsigned long long;                                                   \
    static void score(float (&d)[N / 8][4], Descriptor a, Descriptor b, int add) {           \
      emulated::run_group<F, N, false, false>(d[0], nullptr, a, b, add);                     \
    }                                                                                        \
    static void value(float (&d)[N / 8][4], const unsigned (&a)[4], Descriptor b, int add) { \
      emulated::run_group<F, N, false, true>(d[0], a, 0, b, add);                            \
    }                                                                                        \
    static void value(float (&d)[N / 8][4], Descriptor a, Descriptor b, int add) {           \
      emulated::run_group<F, N, false, true>(d[0], nullptr, a, b, add);                      \
    }                                                                                        \
    static void across(float (&d)[N / 8][4], Descriptor a, Descriptor b, int add) {          \
      emulated::run_group<F, N, true, false>(d[0], nullptr, a, b, add);                      \
    }                                                                                        \
  }
#define RF_EIGHT(NAME, TYPE, ACROSS)                                                       \
  static void NAME(float(&d)[1][4], unsigned long long a, unsigned long long b, int add) { \
    using F = std::conditional_t<TYPE[0] == 'f', emulated::Half, emulated::Bfloat>;        \
    emulated::run_group<F, 8, ACROSS[0] == '1', false>(d[0], nullptr, a, b, add);          \
  }
#define RF_TILE_PRODUCT(T, TYPE, BY_ROWS, TRANSPOSED)                                \
  template <>                                                                        \
  struct TileProduct<T, BY_ROWS> {                                                   \
    static void add(float (&d)[32][4], unsigned long long a, unsigned long long b) { \
      using F = typename emulated::FormatOf<T>::Type;                                \
      emulated::run_group<F, 256, false, !(BY_ROWS)>(d[0], nullptr, a, b, true);     \
    }                                                                                \
  }
#define RF_CODE_PRODUCT(N, M, R0, R1, R2)                                                          \
  template <>                                                                                      \
  struct Product<e4m3fn_t, N> {                                                                    \
    static void score(float (&d)[N / 8][4], unsigned long long a, unsigned long long b, int add) { \
      emulated::GroupProduct own{d[0], nullptr, a, b, add != 0};                                   \
      emulated::host.with_warpgroup(&own, emulated::multiply_codes<N>);                            \
    }                                                                                              \
  }
#define RF_PART_PRODUCT(N, M, R0, R1, R2, R3, R4, R5)                                     \
  template <>                                                                             \
  struct Product<float, N> {                                                              \
    static void score(float (&d)[N / 8][4], const unsigned (&a)[4], unsigned long long b, \
                      int add) {                                                          \
      emulated::GroupProduct own{d[0], a, 0, b, add != 0};                                \
      emulated::host.with_warpgroup(&own, emulated::multiply_floats<N>);                  \
    }                                                                                     \
  }
