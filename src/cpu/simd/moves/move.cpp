// Copies of elements that do not lie side by side (MoveArgs).
#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/isa.h"
#include "cpu/simd/moves/short_square.h"

namespace redfuser::cpu::RF_ISA {
namespace {

RF_INLINE int64_t row_begin(const MoveArgs& g, int64_t r) {
  return g.row_offsets ? g.row_offsets[r] : r * g.row_stride;
}

RF_INLINE int64_t column_at(const MoveArgs& g, int64_t c) {
  return g.column_offsets ? g.column_offsets[c] : c * g.column_stride;
}

// out[c] = from[column(c)] for columns [begin, end), one by one.
template <class T>
RF_INLINE void move_columns(const MoveArgs& g, const T* from, int64_t begin, int64_t end, T* out) {
  const int64_t *offsets = g.column_offsets, step = g.column_stride;
  if (offsets) {
#pragma GCC unroll 4
    for (int64_t c = begin; c < end; ++c) out[c] = from[offsets[c]];
  } else {
    for (int64_t c = begin; c < end; ++c) out[c] = from[c * step];
  }
}

template <class T>
void move_rows(const MoveArgs& g) {
  for (int64_t r = 0; r < g.rows; ++r) {
    move_columns(g, static_cast<const T*>(g.from) + row_begin(g, r), 0, g.columns,
                 static_cast<T*>(g.out) + r * g.out_stride);
  }
}

#if defined(__AVX2__) && defined(__GNUC__) && !defined(__clang__)
#define RF_PERMUTES 1

template <size_t kBytes>
struct LaneOf {
  using Type = typename IntegerOf<kBytes>::Type;
};
template <>
struct LaneOf<1> {
  using Type = int8_t;
};
template <>
struct LaneOf<2> {
  using Type = int16_t;
};

// Vectors that a vector of results is put together from, and vectors of results planned at once.
constexpr int kSources = 4, kPlans = 32;

// Vectors of whole width, but of bytes and pairs of them those that every set shuffles at once.
template <class T>
struct MoveVector {
  static constexpr int kBytes = sizeof(T) >= 4 ? RF_VECTOR_BYTES : 16;
  static constexpr int kWidth = kBytes / static_cast<int>(sizeof(T));
  typedef T Type __attribute__((vector_size(kBytes)));
  using Lane = typename LaneOf<sizeof(T)>::Type;
  typedef Lane Lanes __attribute__((vector_size(kBytes)));
  static RF_INLINE Type load(const T* from) {
    Type v;
    __builtin_memcpy(&v, from, sizeof(v));
    return v;
  }
};

// A vector of results whose elements are among `sources` vectors of the tensor, each from an
// element of `first` on: element l is number lanes[l] of them.
template <class T>
struct Permutation {
  typename MoveVector<T>::Lanes lanes;
  int64_t first[kSources] = {};
  int64_t end = 0;  // one past the last element that is read
  int sources = 0;  // 0: more than there may be
};

// The source that begins at the first element that the sources before do not have; false if they
// have all.
template <class T>
RF_INLINE bool add_source(const int64_t* at, Permutation<T>& p) {
  constexpr int W = MoveVector<T>::kWidth;
  bool left = false;
  int64_t low = 0;
  for (int l = 0; l < W; ++l) {
    if (p.lanes[l] < 0 && (!left || at[l] < low)) low = at[l], left = true;
  }
  if (!left) return false;
  for (int l = 0; l < W; ++l) {
    if (p.lanes[l] < 0 && at[l] - low < W) {
      p.lanes[l] = static_cast<typename MoveVector<T>::Lane>(p.sources * W + at[l] - low);
    }
  }
  p.first[p.sources++] = low;
  p.end = low + W;
  return true;
}

template <class T>
RF_INLINE Permutation<T> permutation_of(const MoveArgs& g, int64_t c) {
  constexpr int W = MoveVector<T>::kWidth;
  constexpr int64_t kManyRows = 32;  // that a longer search is worth
  int64_t at[W];
  Permutation<T> p;
  int64_t low = column_at(g, c), high = low;
  for (int l = 0; l < W; ++l) {
    at[l] = column_at(g, c + l), p.lanes[l] = -1;
    low = at[l] < low ? at[l] : low;
    high = at[l] > high ? at[l] : high;
  }
  if (g.rows < kManyRows && high - low >= kSources * W) return p;
  while (p.sources < kSources && add_source(at, p)) {
    // Elements all over the tensor are not worth the search for more.
    int covered = 0;
    for (int l = 0; l < W; ++l) covered += p.lanes[l] >= 0;
    if (covered * 2 * kSources < W * p.sources) break;
  }
  for (int l = 0; l < W; ++l) {
    if (p.lanes[l] < 0) p.sources = 0;
  }
  return p;
}

// Of p.sources sources.
template <class T, int kCount>
RF_INLINE typename MoveVector<T>::Type permuted(const Permutation<T>& p, const T* from) {
  using V = MoveVector<T>;
  constexpr int W = V::kWidth;
  const auto a = V::load(from + p.first[0]);
  if constexpr (kCount == 1) return __builtin_shuffle(a, p.lanes);
  const auto low = __builtin_shuffle(a, V::load(from + p.first[1]), p.lanes);
  if constexpr (kCount == 2) return low;
  const auto b = V::load(from + p.first[2]);
  const auto c = kCount == 3 ? b : V::load(from + p.first[3]);
  return p.lanes < 2 * W ? low : __builtin_shuffle(b, c, p.lanes);
}

template <class T>
RF_INLINE typename MoveVector<T>::Type permuted(const Permutation<T>& p, const T* from) {
  if (p.sources == 1) return permuted<T, 1>(p, from);
  if (p.sources == 2) return permuted<T, 2>(p, from);
  return p.sources == 3 ? permuted<T, 3>(p, from) : permuted<T, 4>(p, from);
}

// Columns at a stride, all vectors of which are put together alike: as `p`, the first one. Vectors
// too near the tensor's end are moved one by one.
template <class T, int kCount>
void permute_strided(const MoveArgs& args, const Permutation<T>& p) {
  constexpr int W = MoveVector<T>::kWidth;
  const MoveArgs g = args;
  const int64_t vectors = g.columns / W, step = W * g.column_stride, room = g.size - p.end;
  for (int64_t r = 0; r < g.rows; ++r) {
    const int64_t row = row_begin(g, r);
    const T* from = static_cast<const T*>(g.from) + row;
    T* out = static_cast<T*>(g.out) + r * g.out_stride;
    for (int64_t i = 0; i < vectors; ++i) {
      if (row + i * step > room) {
        move_columns(g, from, i * W, (i + 1) * W, out);
      } else {
        const auto v = permuted<T, kCount>(p, from + i * step);
        __builtin_memcpy(out + i * W, &v, sizeof(v));
      }
    }
    move_columns(g, from, vectors * W, g.columns, out);
  }
}

template <class T>
void permute_strided(const MoveArgs& g) {
  if (g.columns < MoveVector<T>::kWidth) return move_rows<T>(g);
  const Permutation<T> p = permutation_of<T>(g, 0);
  switch (p.sources) {
    case 1:
      return permute_strided<T, 1>(g, p);
    case 2:
      return permute_strided<T, 2>(g, p);
    case 3:
      return permute_strided<T, 3>(g, p);
    case 4:
      return permute_strided<T, 4>(g, p);
    default:
      return move_rows<T>(g);
  }
}

// Columns by a table of offsets, by vectors. Elements that are too far apart, or too near the
// tensor's end, are moved one by one.
template <class T>
void permute_table(const MoveArgs& g) {
  constexpr int W = MoveVector<T>::kWidth;
  for (int64_t begin = 0; begin < g.columns; begin += kPlans * W) {
    const int64_t end = begin + kPlans * W < g.columns ? begin + kPlans * W : g.columns;
    const int64_t vectors = (end - begin) / W;
    Permutation<T> plans[kPlans];
    for (int64_t i = 0; i < vectors; ++i) {
      plans[i] = permutation_of<T>(g, begin + i * W);
    }
    for (int64_t r = 0; r < g.rows; ++r) {
      const int64_t row = row_begin(g, r);
      const T* from = static_cast<const T*>(g.from) + row;
      T* out = static_cast<T*>(g.out) + r * g.out_stride;
      for (int64_t i = 0; i < vectors; ++i) {
        const int64_t c = begin + i * W;
        const Permutation<T>& p = plans[i];
        if (p.sources == 0 || row + p.end > g.size) {
          move_columns(g, from, c, c + W, out);
        } else {
          const auto v = permuted(p, from);
          __builtin_memcpy(out + c, &v, sizeof(v));
        }
      }
      move_columns(g, from, begin + vectors * W, end, out);
    }
  }
}
#endif

// Rows and columns of a square that is transposed at once.
template <class T>
constexpr int kSquare = sizeof(T) >= 4 ? VectorOf<T>::kWidth : 16 / static_cast<int>(sizeof(T));

// out[r, c] = from[r + c · column_stride] for a square.
template <class T>
RF_INLINE void transpose_block(const T* from, int64_t column_stride, T* out, int64_t out_stride) {
  if constexpr (sizeof(T) < 4) {
    ShortSquare<T>::transpose(from, column_stride, out, out_stride);
  } else {
    constexpr int W = VectorOf<T>::kWidth;
    Vector<T> v[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) v[i] = load_vector(from + i * column_stride);
    transpose_square<T>(v);
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) store_vector(out + i * out_stride, v[i]);
  }
}

// Rows that lie beside each other, by squares. The rest is moved one by one.
template <class T>
void transpose(const MoveArgs& g) {
  constexpr int64_t kBlock = 16;  // rows that stay in the first-level cache
  constexpr int64_t W = kSquare<T>;
  const T* from = static_cast<const T*>(g.from);
  T* out = static_cast<T*>(g.out);
  // Copies of the strides, which bytes that are written might alias.
  const int64_t step = g.column_stride, stride = g.out_stride;
  const auto plain = [=](int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    for (int64_t c = c0; c < c1; ++c) {
      const T* column = from + c * step;
      for (int64_t r = r0; r < r1; ++r) out[r * stride + c] = column[r];
    }
  };
  const int64_t rows = g.rows / W * W, columns = g.columns / W * W;
  for (int64_t r = 0; r < rows; r += W) {
    for (int64_t c = 0; c < columns; c += W) {
      transpose_block(from + r + c * step, step, out + r * stride + c, stride);
    }
    plain(r, r + W, columns, g.columns);
  }
  for (int64_t r = rows; r < g.rows; r += kBlock) {
    plain(r, r + kBlock < g.rows ? r + kBlock : g.rows, 0, g.columns);
  }
}

// Of rows that lie beside each other, or not.
template <class T>
void move_alike(const MoveArgs& g) {
  const bool strided = g.column_offsets == nullptr;
  const bool beside = g.row_offsets == nullptr && strided && g.row_stride == 1 && g.rows > 1;
#if defined(RF_PERMUTES)
  constexpr int64_t kFewestRows = 3;  // that a table of offsets is looked through for
  const bool near = strided && g.column_stride <= 4 && g.column_stride >= -4;
  const bool permutes = strided ? near : g.rows >= kFewestRows;
  if (permutes && !(beside && g.rows >= kSquare<T>)) {
    return strided ? permute_strided<T>(g) : permute_table<T>(g);
  }
#endif
  beside ? transpose<T>(g) : move_rows<T>(g);
}

// A table of rows may have runs of rows that lie beside each other.
template <class T>
void move(const MoveArgs& g) {
  if (g.row_offsets == nullptr || g.column_offsets != nullptr) return move_alike<T>(g);
  MoveArgs part = g;
  for (int64_t r = 0; r < g.rows; r += part.rows) {
    part.rows = 1;
    const auto follows = [&](int64_t next) {
      return next < g.rows && g.row_offsets[next] == g.row_offsets[next - 1] + 1;
    };
    const bool run = follows(r + 1);
    while (run ? follows(r + part.rows) : r + part.rows < g.rows && !follows(r + part.rows + 1)) {
      ++part.rows;
    }
    part.out = static_cast<T*>(g.out) + r * g.out_stride;
    if (run) {
      part.from = static_cast<const T*>(g.from) + g.row_offsets[r];
      part.size = g.size - g.row_offsets[r];
      part.row_offsets = nullptr, part.row_stride = 1;
    } else {
      part.from = g.from, part.size = g.size;
      part.row_offsets = g.row_offsets + r;
    }
    move_alike<T>(part);
  }
}

}  // namespace

void add_moves(KernelTable& table) {
  table.move[0] = move<uint8_t>;
  table.move[1] = move<uint16_t>;
  table.move[2] = move<float>;
  table.move[3] = move<double>;
}

}  // namespace redfuser::cpu::RF_ISA
