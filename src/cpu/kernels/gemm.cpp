#include "cpu/kernels/gemm_kernel.h"
#include "cpu/kernels/gemm_pack.h"

namespace redfuser::cpu::RF_ISA {
namespace {

constexpr uint8_t kFloat32 = 1, kFloat16 = 10, kFloat64 = 11, kBFloat16 = 16;
// Depth and width of a packed block of B: it stays in the second-level cache, and one panel of it
// in the first-level cache. Rows of A that are converted at a time.
constexpr int64_t kDepth = 256, kWidth = 512, kRows = 96;

template <class T>
using BlockFn = void (*)(int64_t, const T*, int64_t, const T*, int64_t, T*, int64_t, bool);

template <class T>
struct Blocks {
  static constexpr int W = VectorOf<T>::kWidth;
  static constexpr int kPanel = kBlockVectors * W;

  template <int NV>
  static BlockFn<T> of_rows(int rows) {
    switch (rows) {
      case 1: return gemm_block<T, 1, NV>;
      case 2: return gemm_block<T, 2, NV>;
      case 3: return gemm_block<T, 3, NV>;
      case 4: return gemm_block<T, 4, NV>;
      case 5: return gemm_block<T, 5, NV>;
#if RF_VECTOR_BYTES == 64
      case 6: return gemm_block<T, 6, NV>;
      case 7: return gemm_block<T, 7, NV>;
      case 8: return gemm_block<T, 8, NV>;
      case 9: return gemm_block<T, 9, NV>;
      case 10: return gemm_block<T, 10, NV>;
      case 11: return gemm_block<T, 11, NV>;
#endif
      default: return gemm_block<T, kBlockRows, NV>;
    }
  }

  // One panel of packed B against all rows of A.
  static void panel(int64_t m, int64_t columns, int64_t k, const T* a, int64_t a_stride,
                    const T* b, T* c, int64_t c_stride, bool padded, bool accumulate) {
    const int vectors = columns > W ? 2 : 1;
    const bool whole = padded || columns == vectors * W;
    for (int64_t i = 0; i < m; i += kBlockRows) {
      const int rows = static_cast<int>(m - i < kBlockRows ? m - i : kBlockRows);
      const BlockFn<T> block = vectors == 2 ? of_rows<2>(rows) : of_rows<1>(rows);
      T* target = c + i * c_stride;
      if (whole) {
        block(k, a + i * a_stride, a_stride, b, vectors * W, target, c_stride, accumulate);
        continue;
      }
      T edge[kBlockRows * kPanel];
      block(k, a + i * a_stride, a_stride, b, vectors * W, edge, kPanel, false);
      for (int r = 0; r < rows; ++r)
        for (int64_t j = 0; j < columns; ++j)
          target[r * c_stride + j] =
              accumulate ? target[r * c_stride + j] + edge[r * kPanel + j] : edge[r * kPanel + j];
    }
  }
};

// Packs `columns` <= kBlockVectors vectors of B's columns: row p of the panel is contiguous, padded
// with zeros to whole vectors.
template <class T, class S>
void pack_panel(const MatrixView& b, int64_t k0, int64_t depth, int64_t j0, int64_t columns,
                T* to) {
  constexpr int W = VectorOf<T>::kWidth;
  const int64_t width = columns > W ? 2 * W : W;
  const S* base = static_cast<const S*>(b.data);
  const bool unit_columns = !b.column_offsets && b.column_stride == 1;
  if constexpr (sizeof(T) == sizeof(S)) {
    const bool unit_rows = !b.row_offsets && b.row_stride == 1;
    if (unit_rows && !unit_columns) {
      for (int64_t j = 0; j < width; j += W) {
        int64_t p = 0;
        for (; p + W <= depth; p += W) {
          Vector<T> v[W];
#pragma GCC unroll 16
          for (int l = 0; l < W; ++l) {
            const int64_t column = j + l < columns ? j + l : columns - 1;
            v[l] = load_vector(reinterpret_cast<const T*>(base) + k0 + p +
                               column_offset(b, j0 + column));
          }
          transpose_square<T>(v);
#pragma GCC unroll 16
          for (int l = 0; l < W; ++l) store_vector(to + (p + l) * width + j, v[l]);
        }
        for (; p < depth; ++p)
          for (int l = 0; l < W; ++l)
            to[p * width + j + l] =
                j + l < columns
                    ? Element<T, S>::of(base[k0 + p + column_offset(b, j0 + j + l)])
                    : T{};
      }
      return;
    }
  }
  for (int64_t p = 0; p < depth; ++p) {
    const S* row = base + row_offset(b, k0 + p);
    T* out = to + p * width;
    if (unit_columns && columns == 2 * W) {
      for (int64_t j = 0; j < 2 * W; ++j) out[j] = Element<T, S>::of(row[j0 + j]);
    } else {
      for (int64_t j = 0; j < columns; ++j)
        out[j] = Element<T, S>::of(row[column_offset(b, j0 + j)]);
      for (int64_t j = columns; j < width; ++j) out[j] = T{};
    }
  }
}

template <class T, class S>
void pack_rows(const MatrixView& a, int64_t i0, int64_t rows, int64_t k0, int64_t depth, T* to,
               int64_t stride) {
  const S* base = static_cast<const S*>(a.data);
  if (!a.row_offsets && a.row_stride == 1 && (a.column_offsets || a.column_stride != 1)) {
    for (int64_t p = 0; p < depth; ++p) {
      const S* column = base + column_offset(a, k0 + p) + i0;
      for (int64_t i = 0; i < rows; ++i) to[i * stride + p] = Element<T, S>::of(column[i]);
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    const S* row = base + row_offset(a, i0 + i);
    T* out = to + i * stride;
    if (!a.column_offsets && a.column_stride == 1) {
      for (int64_t p = 0; p < depth; ++p) out[p] = Element<T, S>::of(row[k0 + p]);
    } else {
      for (int64_t p = 0; p < depth; ++p)
        out[p] = Element<T, S>::of(row[column_offset(a, k0 + p)]);
    }
  }
}

template <class T>
using PackPanelFn = void (*)(const MatrixView&, int64_t, int64_t, int64_t, int64_t, T*);
template <class T>
using PackRowsFn = void (*)(const MatrixView&, int64_t, int64_t, int64_t, int64_t, T*, int64_t);

template <class T>
PackPanelFn<T> panel_packer(uint8_t storage) {
  switch (storage) {
    case kFloat16: return pack_panel<T, HalfStorage>;
    case kBFloat16: return pack_panel<T, BFloatStorage>;
    case kFloat64: return pack_panel<T, double>;
    default: return pack_panel<T, float>;
  }
}
template <class T>
PackRowsFn<T> row_packer(uint8_t storage) {
  switch (storage) {
    case kFloat16: return pack_rows<T, HalfStorage>;
    case kBFloat16: return pack_rows<T, BFloatStorage>;
    case kFloat64: return pack_rows<T, double>;
    default: return pack_rows<T, float>;
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

// A block of C: B's panel is used by every row before the next panel is touched.
template <class T>
void multiply_block(const GemmArgs& g, int64_t k0, int64_t depth, int64_t j0, int64_t width,
                    const Scratch<T>& scratch) {
  using B = Blocks<T>;
  const PackPanelFn<T> pack = panel_packer<T>(g.b.storage);
  for (int64_t j = 0; j < width; j += B::kPanel)
    pack(g.b, k0, depth, j0 + j, width - j < B::kPanel ? width - j : B::kPanel,
         scratch.b + j * depth);
  const bool in_place = g.a.storage == storage_of<T>() && !g.a.row_offsets &&
                        !g.a.column_offsets && g.a.column_stride == 1;
  const int64_t step = in_place ? g.m : kRows;
  for (int64_t i = 0; i < g.m; i += step) {
    const int64_t rows = g.m - i < step ? g.m - i : step;
    const T* a = static_cast<const T*>(g.a.data) + i * g.a.row_stride + k0;
    int64_t a_stride = g.a.row_stride;
    if (!in_place) {
      a_stride = kDepth + 16;
      row_packer<T>(g.a.storage)(g.a, i, rows, k0, depth, scratch.a, a_stride);
      a = scratch.a;
    }
    for (int64_t j = 0; j < width; j += B::kPanel) {
      const int64_t columns = width - j < B::kPanel ? width - j : B::kPanel;
      B::panel(rows, columns, depth, a, a_stride, scratch.b + j * depth,
               static_cast<T*>(g.c) + i * g.c_stride + j0 + j, g.c_stride, g.c_padded,
               g.accumulate || k0 > 0);
    }
  }
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
  Scratch<T> scratch;
  scratch.b = static_cast<T*>(g.scratch);
  scratch.a = scratch.b + kDepth * kWidth;
  static_assert((kDepth * kWidth + kRows * (kDepth + 16)) * sizeof(T) <= kGemmScratchBytes);
  for (int64_t j = 0; j < g.n; j += kWidth)
    for (int64_t p = 0; p < g.k; p += kDepth)
      multiply_block<T>(g, p, g.k - p < kDepth ? g.k - p : kDepth, j,
                        g.n - j < kWidth ? g.n - j : kWidth, scratch);
}

}  // namespace

void add_gemm(KernelTable& table) {
  table.gemm_f32 = gemm<float>;
  table.gemm_f64 = gemm<double>;
}

}  // namespace redfuser::cpu::RF_ISA
