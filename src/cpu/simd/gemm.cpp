#include "cpu/simd/gemm_kernel.h"
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/gemm_small.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr uint8_t kFloat32 = 1, kFloat16 = 10, kFloat64 = 11, kBFloat16 = 16, kFloat8E4M3FN = 17,
                  kFloat8E4M3FNUZ = 18, kFloat8E5M2 = 19, kFloat8E5M2FNUZ = 20, kFloat8E8M0 = 24;
// Depth and width of a packed block of B: it stays in the second-level cache, and one panel of it
// in the first-level cache. Rows of A that are converted at a time.
constexpr int64_t kDepth = 256, kWidth = 512, kRows = 96;
// Sums of few rows that are held together: they stay in the first-level cache, and long rows of B
// in place are read from end to end.
constexpr int64_t kSmallWidth = 4096;

template <class T>
using BlockFn = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, bool, T*);

template <class T>
struct Blocks {
  static constexpr int W = VectorOf<T>::kWidth;
  static constexpr int kPanel = kBlockVectors * W;

  template <int NV, ReadsB kReads = ReadsB::Packed>
  static BlockFn<T> of_rows(int rows) {
    switch (rows) {
      case 1:
        return gemm_block<T, 1, NV, kReads>;
      case 2:
        return gemm_block<T, 2, NV, kReads>;
      case 3:
        return gemm_block<T, 3, NV, kReads>;
      case 4:
        return gemm_block<T, 4, NV, kReads>;
      case 5:
        return gemm_block<T, 5, NV, kReads>;
#if RF_VECTOR_BYTES == 64
      case 6:
        return gemm_block<T, 6, NV, kReads>;
      case 7:
        return gemm_block<T, 7, NV, kReads>;
      case 8:
        return gemm_block<T, 8, NV, kReads>;
      case 9:
        return gemm_block<T, 9, NV, kReads>;
      case 10:
        return gemm_block<T, 10, NV, kReads>;
      case 11:
        return gemm_block<T, 11, NV, kReads>;
#endif
      default:
        return gemm_block<T, kBlockRows, NV, kReads>;
    }
  }

  // Of the next block, where blocks share the rows that are left equally.
  static int next_rows(int64_t left) {
    const int64_t blocks = (left + kBlockRows - 1) / kBlockRows;
    return static_cast<int>((left + blocks - 1) / blocks);
  }

  // One panel of packed B against all rows of A. `next`, where it is not null, is the panel after
  // it, which is fetched in the meantime if there are blocks enough to share the fetches.
  static void panel(int64_t m, int64_t columns, int64_t k, const T* a, int64_t a_stride, const T* b,
                    T* c, int64_t c_stride, bool padded, bool accumulate, const T* next = nullptr,
                    bool far_rows = false) {
    constexpr int64_t kLine = 64 / sizeof(T), kFewestBlocks = 4;
    const int vectors = columns > W ? 2 : 1;
    const bool whole = padded || columns == vectors * W;
    const int64_t blocks = (m + kBlockRows - 1) / kBlockRows;
    const int64_t share = (k * kPanel / blocks + kLine - 1) / kLine * kLine;
    const bool few = next != nullptr && blocks < kFewestBlocks;
    if (few) next = nullptr;
    int rows = 0;
    for (int64_t i = 0; i < m; i += rows) {
      for (int64_t l = 0; next != nullptr && l < share; l += kLine) {
        __builtin_prefetch(next + l, 0, 2);
      }
      if (next != nullptr) next += share;
      rows = next_rows(m - i);
      const BlockFn<T> block = vectors == 1               ? of_rows<1>(rows)
                               : few && i == 0            ? of_rows<2, ReadsB::FetchesB>(rows)
                               : far_rows && i + rows < m ? of_rows<2, ReadsB::FetchesA>(rows)
                                                          : of_rows<2>(rows);
      T* target = c + i * c_stride;
      if (whole) {
        block(k, a + i * a_stride, a_stride, b, vectors * W, target, c_stride, accumulate, nullptr);
        continue;
      }
      T edge[kBlockRows * kPanel];
      block(k, a + i * a_stride, a_stride, b, vectors * W, edge, kPanel, false, nullptr);
      for (int r = 0; r < rows; ++r)
        for (int64_t j = 0; j < columns; ++j)
          target[r * c_stride + j] =
              accumulate ? target[r * c_stride + j] + edge[r * kPanel + j] : edge[r * kPanel + j];
    }
  }
};

// Packs a vector of B's columns whose elements lie side by side along k: squares are transposed, of
// B itself or of its elements converted. Column j of them is at from + offsets[j].
template <class T, class S>
void pack_unit_rows(const Element<T, S>& element, const S* from, const int64_t* offsets,
                    int64_t depth, T* to, int64_t width) {
  constexpr int W = VectorOf<T>::kWidth;
  constexpr int64_t kStride = kDepth + W;
  const T* columns[W];
  T staged[sizeof(T) == sizeof(S) ? 1 : W * kStride];
  if constexpr (sizeof(T) == sizeof(S)) {
    for (int l = 0; l < W; ++l) columns[l] = reinterpret_cast<const T*>(from + offsets[l]);
  } else {
    for (int l = 0; l < W; ++l) {
      const S* column = from + offsets[l];
      T* out = staged + l * kStride;
      for (int64_t p = 0; p < depth; ++p) out[p] = element.of(column[p]);
      columns[l] = out;
    }
  }
  int64_t p = 0;
  for (; p + W <= depth; p += W) {
    Vector<T> v[W];
#pragma GCC unroll 16
    for (int l = 0; l < W; ++l) v[l] = load_vector(columns[l] + p);
    transpose_square<T>(v);
#pragma GCC unroll 16
    for (int l = 0; l < W; ++l) store_vector(to + (p + l) * width, v[l]);
  }
  for (; p < depth; ++p)
    for (int l = 0; l < W; ++l) to[p * width + l] = columns[l][p];
}

// Packs `columns` <= kBlockVectors vectors of B's columns: row p of the panel is contiguous, padded
// with zeros to whole vectors.
template <class T, class S>
void pack_panel(const MatrixView& b, int64_t k0, int64_t depth, int64_t j0, int64_t columns,
                T* to) {
  constexpr int W = VectorOf<T>::kWidth;
  const int64_t width = columns > W ? 2 * W : W;
  const S* base = static_cast<const S*>(b.data);
  const Element<T, S> element(b);
  if (!b.row_offsets && b.row_stride == 1) {
    for (int64_t j = 0; j < width; j += W) {
      int64_t offsets[W];
      for (int l = 0; l < W; ++l) {
        const int64_t column = j + l < columns ? j + l : columns - 1;
        offsets[l] = k0 + column_offset(b, j0 + column);
      }
      for (int64_t p = 0; p < depth; p += kDepth) {
        const int64_t part = depth - p < kDepth ? depth - p : kDepth;
        pack_unit_rows<T, S>(element, base + p, offsets, part, to + p * width + j, width);
      }
    }
    return;
  }
  for (int64_t p = 0; p < depth; ++p) {
    const S* row = base + row_offset(b, k0 + p);
    T* out = to + p * width;
    for (int64_t j = 0; j < columns; ++j) out[j] = element.of(row[column_offset(b, j0 + j)]);
    for (int64_t j = columns; j < width; ++j) out[j] = T{};
  }
}

// A block whose rows lie side by side in memory is read row by row, each row into every panel, so
// that memory is walked in order.
template <class T, class S>
void pack_by_rows(const MatrixView& b, int64_t k0, int64_t depth, int64_t j0, int64_t width,
                  T* to) {
  constexpr int W = VectorOf<T>::kWidth;
  constexpr int64_t kAhead = 4;  // rows
  const S* base = static_cast<const S*>(b.data) + j0;
  const Element<T, S> element(b);
  for (int64_t p = 0; p < depth; ++p) {
    const S* row = base + row_offset(b, k0 + p);
    const S* next = base + row_offset(b, k0 + (p + kAhead < depth ? p + kAhead : depth - 1));
    int64_t j = 0;
    for (; j + 2 * W <= width; j += 2 * W) {
      T* out = to + j * depth + p * 2 * W;
      __builtin_prefetch(next + j);
      __builtin_prefetch(next + j + 64 / sizeof(S));
      for (int64_t l = 0; l < 2 * W; ++l) out[l] = element.of(row[j + l]);
    }
    if (j == width) continue;
    const int64_t panel = width - j > W ? 2 * W : W;
    T* out = to + j * depth + p * panel;
    for (int64_t l = 0; l < panel; ++l) out[l] = j + l < width ? element.of(row[j + l]) : T{};
  }
}

// Packs a block of B as panels of kBlockVectors vectors.
template <class T, class S>
void pack_block(const MatrixView& b, int64_t k0, int64_t depth, int64_t j0, int64_t width, T* to) {
  if (!b.column_offsets && b.column_stride == 1) {
    return pack_by_rows<T, S>(b, k0, depth, j0, width, to);
  }
  constexpr int64_t kPanel = Blocks<T>::kPanel;
  for (int64_t j = 0; j < width; j += kPanel) {
    pack_panel<T, S>(b, k0, depth, j0 + j, width - j < kPanel ? width - j : kPanel, to + j * depth);
  }
}

template <class T, class S>
void pack_rows(const MatrixView& a, int64_t i0, int64_t rows, int64_t k0, int64_t depth, T* to,
               int64_t stride) {
  const S* base = static_cast<const S*>(a.data);
  const Element<T, S> element(a);
  if (!a.row_offsets && a.row_stride == 1 && (a.column_offsets || a.column_stride != 1)) {
    for (int64_t p = 0; p < depth; ++p) {
      const S* column = base + column_offset(a, k0 + p) + i0;
      for (int64_t i = 0; i < rows; ++i) to[i * stride + p] = element.of(column[i]);
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    const S* row = base + row_offset(a, i0 + i);
    T* out = to + i * stride;
    if (!a.column_offsets && a.column_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) out[p] = element.of(row[k0 + p]);
    } else {
      for (int64_t p = 0; p < depth; ++p) out[p] = element.of(row[column_offset(a, k0 + p)]);
    }
  }
}

template <class T>
using PackBlockFn = void (*)(const MatrixView&, int64_t, int64_t, int64_t, int64_t, T*);
template <class T>
using PackRowsFn = void (*)(const MatrixView&, int64_t, int64_t, int64_t, int64_t, T*, int64_t);

template <class T>
PackBlockFn<T> block_packer(uint8_t storage) {
  switch (storage) {
    case kFloat16:
      return pack_block<T, HalfStorage>;
    case kBFloat16:
      return pack_block<T, BFloatStorage>;
    case kFloat64:
      return pack_block<T, double>;
    case kFloat8E4M3FN:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2:
    case kFloat8E5M2FNUZ:
    case kFloat8E8M0:
      return pack_block<T, CodeStorage>;
    default:
      return pack_block<T, float>;
  }
}
template <class T>
PackRowsFn<T> row_packer(uint8_t storage) {
  switch (storage) {
    case kFloat16:
      return pack_rows<T, HalfStorage>;
    case kBFloat16:
      return pack_rows<T, BFloatStorage>;
    case kFloat64:
      return pack_rows<T, double>;
    case kFloat8E4M3FN:
    case kFloat8E4M3FNUZ:
    case kFloat8E5M2:
    case kFloat8E5M2FNUZ:
    case kFloat8E8M0:
      return pack_rows<T, CodeStorage>;
    default:
      return pack_rows<T, float>;
  }
}

template <class T>
constexpr uint8_t storage_of() {
  return sizeof(T) == 4 ? kFloat32 : kFloat64;
}

template <class T>
struct Scratch {
  T* b;  // kDepth x kWidth
  T* a;  // kRows x kDepth
};

template <class T>
using SmallFn = void (*)(int64_t, int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, bool);

template <class T>
SmallFn<T> small_multiply(int64_t rows, bool unit_columns) {
  switch (rows) {
    case 1:
      return unit_columns ? multiply_columns<T, 1> : multiply_rows<T, 1>;
    case 2:
      return unit_columns ? multiply_columns<T, 2> : multiply_rows<T, 2>;
    case 3:
      return unit_columns ? multiply_columns<T, 3> : multiply_rows<T, 3>;
    default:
      return unit_columns ? multiply_columns<T, 4> : multiply_rows<T, 4>;
  }
}

// Rows of A, converted or gathered into scratch unless they can be read in place.
template <class T>
struct RowsOfA {
  const T* data;
  int64_t stride;
};
template <class T>
bool in_place(const MatrixView& a) {
  return a.storage == storage_of<T>() && !a.row_offsets && !a.column_offsets &&
         a.column_stride == 1;
}
template <class T>
RowsOfA<T> rows_of(const GemmArgs& g, int64_t i, int64_t rows, int64_t k0, int64_t depth,
                   T* scratch) {
  if (in_place<T>(g.a)) {
    return {static_cast<const T*>(g.a.data) + i * g.a.row_stride + k0, g.a.row_stride};
  }
  row_packer<T>(g.a.storage)(g.a, i, rows, k0, depth, scratch, kDepth + 16);
  return {scratch, kDepth + 16};
}

template <class T>
bool is_small(const GemmArgs& g) {
  const MatrixView& b = g.b;
  return g.m <= kRowsInPlace && b.storage == storage_of<T>() && !b.row_offsets &&
         !b.column_offsets && (b.column_stride == 1 || b.row_stride == 1);
}

template <class T>
bool try_small(const GemmArgs& g, int64_t k0, int64_t depth, int64_t j0, int64_t width,
               const Scratch<T>& scratch) {
  if (!is_small<T>(g)) return false;
  const MatrixView& b = g.b;
  const bool unit_columns = b.column_stride == 1;
  const RowsOfA<T> a = rows_of<T>(g, 0, g.m, k0, depth, scratch.a);
  const T* from = static_cast<const T*>(b.data) + k0 * b.row_stride + j0 * b.column_stride;
  small_multiply<T>(g.m, unit_columns)(
      width, depth, a.data, a.stride, from, unit_columns ? b.row_stride : b.column_stride,
      static_cast<T*>(g.c) + j0, g.c_stride, g.accumulate || k0 > 0);
  return true;
}

// Whole panels of B that are rows of vectors in memory: the first rows of A are multiplied with B
// in place, so that the processor multiplies while memory is read, and pack it for the others.
// Returns the columns that are done.
template <class T>
int64_t multiply_in_place(const GemmArgs& g, int64_t k0, int64_t depth, int64_t j0, int64_t width,
                          const Scratch<T>& scratch) {
  using B = Blocks<T>;
  const MatrixView& b = g.b;
  const bool vectors =
      b.storage == storage_of<T>() && !b.row_offsets && !b.column_offsets && b.column_stride == 1;
  if (!vectors || (g.m > kRows && !in_place<T>(g.a))) return 0;
  const RowsOfA<T> a = rows_of<T>(g, 0, g.m, k0, depth, scratch.a);
  const bool accumulate = g.accumulate || k0 > 0;
  const int first = B::next_rows(g.m);
  const BlockFn<T> block = g.m > first ? B::template of_rows<2, ReadsB::AndPacks>(first)
                                       : B::template of_rows<2, ReadsB::InPlace>(first);
  int64_t j = 0;
  for (; j + B::kPanel <= width; j += B::kPanel) {
    const T* from = static_cast<const T*>(b.data) + k0 * b.row_stride + j0 + j;
    T* c = static_cast<T*>(g.c) + j0 + j;
    block(depth, a.data, a.stride, from, b.row_stride, c, g.c_stride, accumulate, scratch.b);
    if (g.m == first) continue;
    B::panel(g.m - first, B::kPanel, depth, a.data + first * a.stride, a.stride, scratch.b,
             c + first * g.c_stride, g.c_stride, g.c_padded, accumulate, nullptr, j == 0);
  }
  return j;
}

// A block of C: B's panel is used by every row before the next panel is touched.
template <class T>
void multiply_block(const GemmArgs& g, int64_t k0, int64_t depth, int64_t j0, int64_t width,
                    const Scratch<T>& scratch) {
  using B = Blocks<T>;
  if (try_small<T>(g, k0, depth, j0, width, scratch)) return;
  const int64_t done = multiply_in_place<T>(g, k0, depth, j0, width, scratch);
  if (done == width) return;
  j0 += done;
  width -= done;
  block_packer<T>(g.b.storage)(g.b, k0, depth, j0, width, scratch.b);
  const int64_t step = in_place<T>(g.a) ? g.m : kRows;
  for (int64_t i = 0; i < g.m; i += step) {
    const int64_t rows = g.m - i < step ? g.m - i : step;
    const RowsOfA<T> a = rows_of<T>(g, i, rows, k0, depth, scratch.a);
    for (int64_t j = 0; j < width; j += B::kPanel) {
      const int64_t columns = width - j < B::kPanel ? width - j : B::kPanel;
      B::panel(rows, columns, depth, a.data, a.stride, scratch.b + j * depth,
               static_cast<T*>(g.c) + i * g.c_stride + j0 + j, g.c_stride, g.c_padded,
               g.accumulate || k0 > 0);
    }
  }
}

// Rows `a` of A, from row `first` on, times part [p, p + depth) of the panels of columns [begin,
// end). One or two rows are multiplied with several panels at a time: with one, each sum would wait
// for the one before.
template <class T>
void multiply_part(const GemmArgs& g, const RowsOfA<T>& a, int64_t first, int64_t rows, int64_t p,
                   int64_t depth, int64_t begin, int64_t end) {
  using B = Blocks<T>;
  constexpr int64_t kPanel = B::kPanel;
  const T* panels = static_cast<const T*>(g.panels);
  const bool accumulate = g.accumulate || p > 0;
  T* c = static_cast<T*>(g.c) + first * g.c_stride;
  const int64_t together = rows == 1 ? 4 : 2;
  int64_t j = begin;
  for (; rows <= 2 && j + together * kPanel <= end; j += together * kPanel) {
    const T* b = panels + j * g.k + p * kPanel;
    if (rows == 1) {
      gemm_pairs<T, 1, 8>(depth, a.data, a.stride, b, kPanel, kPanel * g.k, c + j, g.c_stride,
                          accumulate);
    } else {
      gemm_pairs<T, 2, 4>(depth, a.data, a.stride, b, kPanel, kPanel * g.k, c + j, g.c_stride,
                          accumulate);
    }
  }
  for (; j < end; j += kPanel) {
    const int64_t columns = g.n - j < kPanel ? g.n - j : kPanel;
    const int64_t width = columns > VectorOf<T>::kWidth ? kPanel : VectorOf<T>::kWidth;
    const T* b = panels + j * g.k + p * width;
    // The part after it in memory, or of the next panel.
    const T* next = b + (end - begin <= kPanel ? depth : g.k) * width;
    const bool last = next + depth * kPanel > panels + g.n / kPanel * kPanel * g.k;
    B::panel(rows, columns, depth, a.data, a.stride, b, c + j, g.c_stride, g.c_padded, accumulate,
             last ? nullptr : next);
  }
}

// Products with packed panels of the whole depth. Where A stays near, each panel is read from end
// to end.
template <class T>
void multiply_panels(const GemmArgs& g, const Scratch<T>& scratch) {
  constexpr int64_t kPanel = Blocks<T>::kPanel, kNearBytes = 1 << 19;
  const bool direct = in_place<T>(g.a);
  const int64_t step = direct ? g.m : kRows;
  const bool near = direct && g.m > 2 && g.m * g.k * static_cast<int64_t>(sizeof(T)) <= kNearBytes;
  const int64_t width = near ? kPanel : g.n;
  for (int64_t j = 0; j < g.n; j += width) {
    for (int64_t p = 0; p < g.k; p += kDepth) {
      const int64_t depth = g.k - p < kDepth ? g.k - p : kDepth;
      for (int64_t i = 0; i < g.m; i += step) {
        const int64_t rows = g.m - i < step ? g.m - i : step;
        const RowsOfA<T> a = rows_of<T>(g, i, rows, p, depth, scratch.a);
        multiply_part<T>(g, a, i, rows, p, depth, j, g.n - j < width ? g.n : j + width);
      }
    }
  }
}

template <class T>
void pack(const MatrixView& b, int64_t k, int64_t n, void* out) {
  block_packer<T>(b.storage)(b, 0, k, 0, n, static_cast<T*>(out));
}

template <class T>
void gemm(const GemmArgs& g) {
  if (g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) {
    if (g.accumulate) return;
    for (int64_t i = 0; i < g.m; ++i)
      for (int64_t j = 0; j < g.n; ++j) static_cast<T*>(g.c)[i * g.c_stride + j] = T{};
    return;
  }
  Scratch<T> scratch{};
  if (g.scratch) {
    scratch.b = static_cast<T*>(g.scratch);
    scratch.a = scratch.b + kDepth * kWidth;
  }
  static_assert((kDepth * kWidth + kRows * (kDepth + 16)) * sizeof(T) <= kGemmScratchBytes);
  if (g.panels) return multiply_panels<T>(g, scratch);
  const int64_t width = is_small<T>(g) ? kSmallWidth / g.m : kWidth;
  for (int64_t j = 0; j < g.n; j += width)
    for (int64_t p = 0; p < g.k; p += kDepth)
      multiply_block<T>(g, p, g.k - p < kDepth ? g.k - p : kDepth, j,
                        g.n - j < width ? g.n - j : width, scratch);
}

}  // namespace

void add_gemm(KernelTable& table) {
  table.gemm_f32 = gemm<float>;
  table.gemm_f64 = gemm<double>;
  table.pack_f32 = pack<float>;
  table.pack_f64 = pack<double>;
}

}  // namespace redfuser::cpu::RF_ISA
