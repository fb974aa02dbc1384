// Register-blocked integer products over packed factors, for any dot product of groups of 4 bytes.
// Sources include it where the instructions of their dot product are switched on, with a Dot of
// their own: no function of it is shared between them.
#pragma once

#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/integers/integer_gemm.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr uint8_t kUInt8 = 2;
constexpr int kIntegers = VectorOf<int32_t>::kWidth;
constexpr int kIntegerPanel = kBlockVectors * kIntegers;

template <int kBytes>
struct BitsOf {
  using Type = uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = uint16_t;
};

// Packs rows [count][depth], padded to whole groups of `multiple`.
template <class T, class S>
void pack_integer_rows(const IntegerPackArgs& p, int64_t multiple) {
  const MatrixView& a = p.matrix;
  const int64_t depth = p.depth, stride = (depth + multiple - 1) / multiple * multiple;
  const T offset = static_cast<T>(p.offset);
  const S* base = static_cast<const S*>(a.data);
  for (int64_t i = 0; i < p.count; ++i) {
    const S* row = base + row_offset(a, i);
    T* out = static_cast<T*>(p.out) + i * stride;
    if (!a.column_offsets && a.column_stride == 1) {
      RF_INDEPENDENT
      for (int64_t k = 0; k < depth; ++k) out[k] = static_cast<T>(row[k] + offset);
    } else {
      for (int64_t k = 0; k < depth; ++k)
        out[k] = static_cast<T>(row[column_offset(a, k)] + offset);
    }
    for (int64_t k = depth; k < stride; ++k) out[k] = T{};
    if (!p.sums) continue;
    uint32_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += static_cast<uint32_t>(out[k]);
    p.sums[i] = static_cast<int32_t>(sum);
  }
}

// A group of elements as the word that the panel holds.
template <class T, class S>
RF_INLINE uint32_t moved(S element, int64_t shift, T offset) {
  using Bits = typename BitsOf<sizeof(T)>::Type;
  return static_cast<uint32_t>(static_cast<Bits>(element + offset)) << shift;
}

// One group of rows of the right factor, into a panel.
template <class T, class S>
RF_INLINE void interleave(const S* const* rows, int64_t columns, T offset, uint32_t* out) {
  if constexpr (sizeof(T) == 1) {
    const S *r0 = rows[0], *r1 = rows[1], *r2 = rows[2], *r3 = rows[3];
    RF_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j)
      out[j] = moved<T>(r0[j], 0, offset) | moved<T>(r1[j], 8, offset) |
               moved<T>(r2[j], 16, offset) | moved<T>(r3[j], 24, offset);
  } else {
    const S *r0 = rows[0], *r1 = rows[1];
    RF_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j)
      out[j] = moved<T>(r0[j], 0, offset) | moved<T>(r1[j], 16, offset);
  }
}

// Packs the columns [first, first + columns) of a panel.
template <class T, class S>
void pack_integer_panel(const IntegerPackArgs& p, int64_t depth, int64_t first, int64_t columns,
                        uint32_t* out) {
  constexpr int kGroup = 4 / sizeof(T);
  const MatrixView& b = p.matrix;
  const T offset = static_cast<T>(p.offset);
  const S* base = static_cast<const S*>(b.data);
  int64_t k = 0;
  if (!b.column_offsets && b.column_stride == 1) {
    for (; k + kGroup <= p.depth; k += kGroup, out += kIntegerPanel) {
      const S* rows[kGroup];
      for (int g = 0; g < kGroup; ++g) rows[g] = base + row_offset(b, k + g) + first;
      if (columns == kIntegerPanel) {
        interleave<T, S>(rows, kIntegerPanel, offset, out);
      } else {
        interleave<T, S>(rows, columns, offset, out);
        for (int64_t j = columns; j < kIntegerPanel; ++j) out[j] = 0;
      }
    }
  }
  for (; k < depth; k += kGroup, out += kIntegerPanel) {
    for (int64_t j = 0; j < kIntegerPanel; ++j) {
      out[j] = 0;
      for (int64_t g = 0; g < kGroup && j < columns && k + g < p.depth; ++g)
        out[j] |= moved<T>(base[row_offset(b, k + g) + column_offset(b, first + j)],
                           static_cast<int64_t>(8 * sizeof(T)) * g, offset);
    }
  }
}

// Of a packed panel, padding included.
template <class T>
void sum_integer_panel(const uint32_t* panel, int64_t depth, int64_t columns, int32_t* sums) {
  constexpr int kGroup = 4 / sizeof(T);
  uint32_t total[kIntegerPanel] = {};
  for (int64_t k = 0; k < depth; k += kGroup, panel += kIntegerPanel)
    for (int64_t j = 0; j < kIntegerPanel; ++j)
#pragma GCC unroll 4
      for (int g = 0; g < kGroup; ++g)
        total[j] += static_cast<uint32_t>(static_cast<T>(panel[j] >> (8 * sizeof(T)) * g));
  for (int64_t j = 0; j < columns; ++j) sums[j] = static_cast<int32_t>(total[j]);
}

template <class T, class S>
void pack_integer_columns(const IntegerPackArgs& p, int64_t multiple) {
  const int64_t depth = (p.depth + multiple - 1) / multiple * multiple;
  constexpr int64_t kGroup = 4 / sizeof(T);
  auto* out = static_cast<uint32_t*>(p.out);
  for (int64_t j = 0; j < p.count; j += kIntegerPanel, out += depth / kGroup * kIntegerPanel) {
    const int64_t columns = p.count - j < kIntegerPanel ? p.count - j : kIntegerPanel;
    pack_integer_panel<T, S>(p, depth, j, columns, out);
    if (p.sums) sum_integer_panel<T>(out, depth, columns, p.sums + j);
  }
}

// `Dot` has the signed or unsigned elements in its panels that its sums are to be made of.
template <class Dot>
void pack_rows_of(const IntegerPackArgs& p) {
  using T = typename Dot::Packed;
  const bool is_unsigned = p.matrix.storage == kUInt8;
  if (sizeof(T) == 2) {
    return is_unsigned ? pack_integer_rows<T, uint8_t>(p, Dot::kDepth)
                       : pack_integer_rows<T, int8_t>(p, Dot::kDepth);
  }
  // The moved elements of the other sign than the stored ones, or the stored ones.
  if (is_unsigned == (p.offset == 0)) {
    return is_unsigned ? pack_integer_rows<uint8_t, uint8_t>(p, Dot::kDepth)
                       : pack_integer_rows<uint8_t, int8_t>(p, Dot::kDepth);
  }
  return is_unsigned ? pack_integer_rows<int8_t, uint8_t>(p, Dot::kDepth)
                     : pack_integer_rows<int8_t, int8_t>(p, Dot::kDepth);
}

template <class Dot>
void pack_columns_of(const IntegerPackArgs& p) {
  using T = typename Dot::Packed;
  const bool is_unsigned = p.matrix.storage == kUInt8;
  if (sizeof(T) == 2) {
    return is_unsigned ? pack_integer_columns<T, uint8_t>(p, Dot::kDepth)
                       : pack_integer_columns<T, int8_t>(p, Dot::kDepth);
  }
  if (is_unsigned == (p.offset == 0)) {
    return is_unsigned ? pack_integer_columns<uint8_t, uint8_t>(p, Dot::kDepth)
                       : pack_integer_columns<uint8_t, int8_t>(p, Dot::kDepth);
  }
  return is_unsigned ? pack_integer_columns<int8_t, uint8_t>(p, Dot::kDepth)
                     : pack_integer_columns<int8_t, int8_t>(p, Dot::kDepth);
}

// C[MR, NV vectors] = A[MR, depth] · panel.
template <class Dot, bool kLeftSigned, int MR, int NV>
void integer_block(int64_t groups, const char* a, int64_t a_stride, const char* b, int32_t* c,
                   int64_t c_stride) {
  using V = Vector<int32_t>;
  V sum[MR][NV] = {};
  for (int64_t p = 0; p < groups; ++p) {
    V right[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j)
      right[j] = load_vector(reinterpret_cast<const int32_t*>(b) + j * kIntegers);
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
    b += 4 * kIntegerPanel;
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i)
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) store_vector(c + i * c_stride + j * kIntegers, sum[i][j]);
}

using IntegerBlockFn = void (*)(int64_t, const char*, int64_t, const char*, int32_t*, int64_t);

template <class Dot, bool kLeftSigned, int NV, int MR = kBlockRows>
IntegerBlockFn integer_block_of(int64_t rows) {
  if constexpr (MR > 1) {
    if (rows < MR) return integer_block_of<Dot, kLeftSigned, NV, MR - 1>(rows);
  }
  return integer_block<Dot, kLeftSigned, MR, NV>;
}

template <class Dot, bool kLeftSigned>
void multiply_signed(const IntegerMultiplyArgs& g) {
  constexpr int64_t kBytes = sizeof(typename Dot::Packed);
  const int64_t groups = g.depth * kBytes / 4;
  const char* b = static_cast<const char*>(g.b);
  for (int64_t j = 0; j < g.n; j += kIntegerPanel, b += 4 * groups * kIntegerPanel) {
    const bool two = g.n - j > kIntegers;
    for (int64_t i = 0; i < g.m; i += kBlockRows) {
      const IntegerBlockFn block = two ? integer_block_of<Dot, kLeftSigned, 2>(g.m - i)
                                       : integer_block_of<Dot, kLeftSigned, 1>(g.m - i);
      block(groups, static_cast<const char*>(g.a) + i * g.a_stride, g.a_stride, b,
            g.c + i * g.c_stride + j, g.c_stride);
    }
  }
}

template <class Dot>
void multiply_integers(const IntegerMultiplyArgs& g) {
  return g.left_signed ? multiply_signed<Dot, true>(g) : multiply_signed<Dot, false>(g);
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
