// The factors of integer products as their kernels read them: rows, and panels of columns.
#pragma once

#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/integers/integer_gemm.h"
#include "cpu/simd/moves/short_square.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr uint8_t kUInt8 = 2;
constexpr int kIntegers = VectorOf<int32_t>::kWidth;
constexpr int kIntegerPanel = kBlockVectors * kIntegers;

// The bytes of a group in a panel.
template <int kGroup>
struct WordOf {
  using Type = uint32_t;
};
template <>
struct WordOf<2> {
  using Type = uint16_t;
};
template <int kGroup>
using Word = typename WordOf<kGroup>::Type;

// Rows of bytes whose columns lie one after the other, in squares; `out` has rows `stride` apart.
// Returns the first element of the depth that is left, of every row.
template <class T>
int64_t transpose_rows(const IntegerPackArgs& p, T* out, int64_t stride) {
  using Square = ShortSquare<uint8_t>;
  constexpr int64_t W = Square::kWidth;
  const auto* base = static_cast<const uint8_t*>(p.matrix.data);
  auto* to = reinterpret_cast<uint8_t*>(out);
  const uint8_t flip = p.offset == 0 ? 0 : 0x80;
  const int64_t depth = p.depth / W * W;
  for (int64_t k = 0; k < depth; k += W) {
    const uint8_t* from = base + k * p.matrix.column_stride;
    int64_t i = 0;
    for (; i + W <= p.count; i += W) {
      Square::transpose(from + i, p.matrix.column_stride, to + i * stride + k, stride);
    }
    for (; i < p.count; ++i) {
      for (int64_t j = 0; j < W; ++j) to[i * stride + k + j] = from[i + j * p.matrix.column_stride];
    }
  }
  for (int64_t i = 0; flip != 0 && i < p.count; ++i) {
    for (int64_t k = 0; k < depth; ++k) to[i * stride + k] ^= flip;
  }
  return depth;
}

// Packs rows [count][depth], padded to whole groups of `multiple`.
template <class T, class S>
void pack_integer_rows(const IntegerPackArgs& p, int64_t multiple) {
  const MatrixView& a = p.matrix;
  const int64_t depth = p.depth, stride = (depth + multiple - 1) / multiple * multiple;
  const T offset = static_cast<T>(p.offset);
  const S* base = static_cast<const S*>(a.data);
  int64_t done = 0;
  if constexpr (sizeof(T) == 1) {
    const bool columns = !a.row_offsets && !a.column_offsets && a.row_stride == 1;
    if (columns && a.column_stride != 1) done = transpose_rows(p, static_cast<T*>(p.out), stride);
  }
  for (int64_t i = 0; i < p.count; ++i) {
    const S* row = base + row_offset(a, i);
    T* out = static_cast<T*>(p.out) + i * stride;
    if (!a.column_offsets && a.column_stride == 1) {
      RF_INDEPENDENT
      for (int64_t k = 0; k < depth; ++k) out[k] = static_cast<T>(row[k] + offset);
    } else {
      for (int64_t k = done; k < depth; ++k)
        out[k] = static_cast<T>(row[column_offset(a, k)] + offset);
    }
    for (int64_t k = depth; k < stride; ++k) out[k] = T{};
    if (!p.sums) continue;
    uint32_t sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += static_cast<uint32_t>(out[k]);
    p.sums[i] = static_cast<int32_t>(sum);
  }
}

// An element in its place of the word that the panel holds.
template <int kGroup, class T, class S>
RF_INLINE Word<kGroup> moved(S element, int64_t index, T offset) {
  const auto bits = static_cast<uint8_t>(static_cast<T>(element + offset));
  return static_cast<Word<kGroup>>(static_cast<Word<kGroup>>(bits) << (8 * index));
}

// One group of rows of the right factor, into a panel.
template <int kGroup, class T, class S>
RF_INLINE void interleave(const S* const* rows, int64_t columns, T offset, Word<kGroup>* out) {
  const auto join = [](Word<kGroup> a, Word<kGroup> b) { return static_cast<Word<kGroup>>(a | b); };
  const S *r0 = rows[0], *r1 = rows[1];
  if constexpr (kGroup == 4) {
    const S *r2 = rows[2], *r3 = rows[3];
    RF_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j)
      out[j] = join(join(moved<4, T>(r0[j], 0, offset), moved<4, T>(r1[j], 1, offset)),
                    join(moved<4, T>(r2[j], 2, offset), moved<4, T>(r3[j], 3, offset)));
  } else {
    RF_INDEPENDENT
    for (int64_t j = 0; j < columns; ++j)
      out[j] = join(moved<2, T>(r0[j], 0, offset), moved<2, T>(r1[j], 1, offset));
  }
}

// Columns whose elements lie one after the other, into a panel: their words, transposed. Returns
// the first element of the depth that is left.
template <int kGroup, class S>
int64_t transpose_words(const IntegerPackArgs& p, int64_t first, int64_t columns,
                        Word<kGroup>* out) {
  using W = Word<kGroup>;
  constexpr auto kHighest = static_cast<W>(0x80808080u);
  const W flip = p.offset == 0 ? W{0} : kHighest;
  const S* from[kIntegerPanel];
  for (int64_t j = 0; j < columns; ++j) {
    from[j] = static_cast<const S*>(p.matrix.data) + column_offset(p.matrix, first + j);
  }
  int64_t k = 0;
  if constexpr (kGroup == 4) {
    constexpr int64_t kBytes = kGroup * kIntegers;
    for (; columns == kIntegerPanel && k + kBytes <= p.depth; k += kBytes) {
      for (int64_t j = 0; j < kIntegerPanel; j += kIntegers) {
        Vector<int32_t> v[kIntegers];
#pragma GCC unroll 16
        for (int i = 0; i < kIntegers; ++i) __builtin_memcpy(&v[i], from[j + i] + k, kBytes);
        transpose_square<int32_t>(v);
#pragma GCC unroll 16
        for (int i = 0; i < kIntegers; ++i) {
          const Vector<int32_t> words = v[i] ^ static_cast<int32_t>(flip);
          __builtin_memcpy(out + i * kIntegerPanel + j, &words, sizeof(words));
        }
      }
      out += kIntegers * kIntegerPanel;
    }
  }
  for (; k + kGroup <= p.depth; k += kGroup, out += kIntegerPanel) {
    for (int64_t j = 0; j < columns; ++j) {
      W word;
      __builtin_memcpy(&word, from[j] + k, sizeof(word));
      out[j] = static_cast<W>(word ^ flip);
    }
    for (int64_t j = columns; j < kIntegerPanel; ++j) out[j] = 0;
  }
  return k;
}

// Packs the columns [first, first + columns) of a panel.
template <int kGroup, class T, class S>
void pack_integer_panel(const IntegerPackArgs& p, int64_t depth, int64_t first, int64_t columns,
                        Word<kGroup>* out) {
  const MatrixView& b = p.matrix;
  const T offset = static_cast<T>(p.offset);
  const S* base = static_cast<const S*>(b.data);
  int64_t k = 0;
  if (!b.row_offsets && b.row_stride == 1) {
    k = transpose_words<kGroup, S>(p, first, columns, out);
    out += k / kGroup * kIntegerPanel;
  } else if (!b.column_offsets && b.column_stride == 1) {
    for (; k + kGroup <= p.depth; k += kGroup, out += kIntegerPanel) {
      const S* rows[kGroup];
      for (int g = 0; g < kGroup; ++g) rows[g] = base + row_offset(b, k + g) + first;
      if (columns == kIntegerPanel) {
        interleave<kGroup, T, S>(rows, kIntegerPanel, offset, out);
      } else {
        interleave<kGroup, T, S>(rows, columns, offset, out);
        for (int64_t j = columns; j < kIntegerPanel; ++j) out[j] = 0;
      }
    }
  }
  for (; k < depth; k += kGroup, out += kIntegerPanel) {
    for (int64_t j = 0; j < kIntegerPanel; ++j) {
      out[j] = 0;
      for (int64_t g = 0; g < kGroup && j < columns && k + g < p.depth; ++g)
        out[j] |=
            moved<kGroup, T>(base[row_offset(b, k + g) + column_offset(b, first + j)], g, offset);
    }
  }
}

// Of a packed panel, padding included.
template <int kGroup, class T>
void sum_integer_panel(const Word<kGroup>* panel, int64_t depth, int64_t columns, int32_t* sums) {
  uint32_t total[kIntegerPanel] = {};
  for (int64_t k = 0; k < depth; k += kGroup, panel += kIntegerPanel)
    for (int64_t j = 0; j < kIntegerPanel; ++j)
#pragma GCC unroll 4
      for (int g = 0; g < kGroup; ++g)
        total[j] += static_cast<uint32_t>(static_cast<T>(panel[j] >> (8 * g)));
  for (int64_t j = 0; j < columns; ++j) sums[j] = static_cast<int32_t>(total[j]);
}

template <int kGroup, class T, class S>
void pack_integer_columns(const IntegerPackArgs& p, int64_t multiple) {
  const int64_t depth = (p.depth + multiple - 1) / multiple * multiple;
  auto* out = static_cast<Word<kGroup>*>(p.out);
  for (int64_t j = 0; j < p.count; j += kIntegerPanel, out += depth / kGroup * kIntegerPanel) {
    const int64_t columns = p.count - j < kIntegerPanel ? p.count - j : kIntegerPanel;
    pack_integer_panel<kGroup, T, S>(p, depth, j, columns, out);
    if (p.sums) sum_integer_panel<kGroup, T>(out, depth, columns, p.sums + j);
  }
}

// Calls pack(to, from): zeros of the types by which bytes are packed and held. Moved ones
// are of the other sign.
template <class Pack>
void with_types(const IntegerPackArgs& p, Pack pack) {
  const bool is_unsigned = p.matrix.storage == kUInt8;
  if (is_unsigned == (p.offset == 0)) {
    return is_unsigned ? pack(uint8_t{}, uint8_t{}) : pack(uint8_t{}, int8_t{});
  }
  return is_unsigned ? pack(int8_t{}, uint8_t{}) : pack(int8_t{}, int8_t{});
}

template <class Dot>
void pack_rows_of(const IntegerPackArgs& p) {
  using Left = typename Dot::Left;
  with_types(p, [&](auto to, auto from) {
    using S = decltype(from);
    if constexpr (sizeof(Left) == 2) {
      pack_integer_rows<Left, S>(p, Dot::kDepth);
    } else {
      pack_integer_rows<decltype(to), S>(p, Dot::kDepth);
    }
  });
}

template <class Dot>
void pack_columns_of(const IntegerPackArgs& p) {
  with_types(p, [&](auto to, auto from) {
    constexpr int kGroup = 4 / sizeof(typename Dot::Left);
    pack_integer_columns<kGroup, decltype(to), decltype(from)>(p, Dot::kDepth);
  });
}

}  // namespace
}  // namespace redfuser::cpu::RF_ISA
