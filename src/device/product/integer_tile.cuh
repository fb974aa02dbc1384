// The tile of a product of 8-bit integers, and its copies to shared memory and into fragments
// (device/product/integer_product.cuh).
#pragma once

#include "device/product/ptx_integer_product.cuh"
#include "device/ptx.cuh"

// A, B: signed char or unsigned char. AlongA, AlongB: the matrix is contiguous along the contracted
// axis, else along its lines, which are the product's rows or columns. SumA, SumB: lines are summed
// for the other matrix's zero point. Products: matrices b of one size and layout. Rows, Columns: of
// each product's tile. Depth: elements of the contracted axis in a stage of the ring. Blocks: of a
// cluster.
template <typename A_, typename B_, bool AlongA_, bool AlongB_, bool SumA_, bool SumB_,
          int Products_, int Rows_, int Columns_, int RowWarps_, int ColumnWarps_, int DepthWarps_,
          int Depth_, int Stages_, int Blocks_>
struct IntegerTile {
  using A = A_;
  using B = B_;
  static constexpr bool AlongA = AlongA_, AlongB = AlongB_, SumA = SumA_, SumB = SumB_;
  static constexpr int Products = Products_, Rows = Rows_, Columns = Columns_;
  static constexpr int RowWarps = RowWarps_, ColumnWarps = ColumnWarps_, DepthWarps = DepthWarps_;
  static constexpr int Depth = Depth_, Stages = Stages_, Blocks = Blocks_;
  static constexpr int Warps = RowWarps * ColumnWarps * DepthWarps, Threads = Warps * 32;
  // Groups of 16 rows and of 16 columns of a warp.
  static constexpr int RowGroups = Rows / RowWarps / 16;
  static constexpr int ColumnGroups = Columns / ColumnWarps / 16;
  static constexpr int StageBytes = (Rows + Products * Columns) * Depth;
  static constexpr int SumBytes = Products * Rows * Columns * static_cast<int>(sizeof(int));
  // The ring, whose place sums take; then the sums of lines.
  static constexpr int DataBytes = Stages * StageBytes > SumBytes ? Stages* StageBytes : SumBytes;
  static_assert(Rows % (16 * RowWarps) == 0 && Columns % (16 * ColumnWarps) == 0);
  static_assert(Columns % 32 == 0 && Rows % Blocks == 0 && Depth % (32 * DepthWarps) == 0);
};

// Element k of line l: data[l · line + k · depth]. Copies along the contiguous axis have `width`
// bytes: 16, 8 or 4, or 1 where they are single elements.
template <typename T>
struct IntegerMatrix {
  const T* data;
  long long line, depth;
  int width;
};

// The widest copies that start at multiples of their size.
template <bool Along, typename T>
__device__ __forceinline__ IntegerMatrix<T> integer_matrix(const T* data, long long line,
                                                           long long depth) {
  const unsigned long long starts = reinterpret_cast<unsigned long long>(data) |
                                    static_cast<unsigned long long>(Along ? line : depth);
  int width = starts % 16 == 0 ? 16 : starts % 8 == 0 ? 8 : starts % 4 == 0 ? 4 : 1;
  if ((Along ? depth : line) != 1) width = 1;
  return {data, line, depth, width};
}

struct IntegerPlace {
  int row, column;  // of the tile's first element
  long long batch;
};

// The block's tile, of `rows` by `columns` tiles in each product of the batch. Consecutive tiles go
// down a few rows of tiles before the next columns, so that concurrent tiles share operands in L2.
template <typename Tile>
__device__ __forceinline__ IntegerPlace place_integer_tile(unsigned rows, unsigned columns) {
  constexpr unsigned kTogether = 16;
  const unsigned tile = blockIdx.x / Tile::Blocks, inside = tile % (rows * columns);
  const unsigned band = kTogether * columns, top = inside / band * kTogether;
  const unsigned height = min(rows - top, kTogether), at = inside % band;
  return {static_cast<int>((top + at % height) * Tile::Rows),
          static_cast<int>(at / height * Tile::Columns), tile / (rows * columns)};
}

// The order of lines in shared memory, or of elements of the contracted axis where the matrix is
// contiguous along lines: 16 rows are places 0 1 4 5 8 9 12 13, 2 3 6 7 10 11 14 15. Lines of the
// first 8 and of the last 8 then have the sums of 4 adjacent columns in one thread, and pairs of
// elements from two registers of ldmatrix.trans are 4 adjacent ones.
__device__ __forceinline__ int placed(int row) {
  return (row & ~15) + ((row & 7) >> 1) * 4 + ((row >> 3) & 1) * 2 + (row & 1);
}

// A matrix's part of a stage: rows of 16-byte chunks, of a line each (Along) or of an element of
// the contracted axis, in the order of placed().
template <bool Along, int Lines, int Depth>
struct IntegerSlab {
  static constexpr int kRows = Along ? Lines : Depth, kChunks = (Along ? Depth : Lines) / 16;
  static constexpr int kBytes = Lines * Depth;

  // The byte where a chunk starts. Equal chunks of 8 consecutive rows are in different banks.
  static __device__ __forceinline__ int at(int row, int chunk) {
    constexpr int kEvery = kChunks >= 8 ? 1 : 8 / kChunks, kTurns = kChunks >= 8 ? 8 : kChunks;
    return (row * kChunks + (chunk ^ (row / kEvery % kTurns))) * 16;
  }
};

// 16 elements that are `step` apart, of which the first `valid` exist; the others are zeros.
template <typename T>
__device__ __forceinline__ uint4 gather_bytes(const T* from, long long step, int valid) {
  unsigned words[4] = {};
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    if (i < valid) {
      words[i / 4] |= static_cast<unsigned>(static_cast<unsigned char>(from[i * step]))
                      << (i % 4 * 8);
    }
  }
  return make_uint4(words[0], words[1], words[2], words[3]);
}

// A chunk of 16 elements, of which the first `valid` exist, by copies of Width bytes.
template <int Width, bool Along, typename T>
__device__ __forceinline__ void load_chunk(char* to, const IntegerMatrix<T>& matrix, const T* from,
                                           int valid) {
  if constexpr (Width == 16) {
    ptx_copy_async_part(to, from, valid);
  } else if constexpr (Width > 1) {
#pragma unroll
    for (int i = 0; i < 16; i += Width) {
      ptx_copy_async_narrow<Width>(to + i, from + i, max(0, min(valid - i, Width)));
    }
  } else {
    *reinterpret_cast<uint4*>(to) = gather_bytes(from, Along ? matrix.depth : matrix.line, valid);
  }
}

// Lines from `line` on, of `lines`, at elements from `from` on, of `depth`, by all threads.
// Elements that do not exist are zeros.
template <typename Slab, bool Along, int Threads, int Width, typename T>
__device__ __forceinline__ void load_slab(char* to, const IntegerMatrix<T>& matrix, int line,
                                          int lines, int from, int depth) {
  constexpr int kAll = Slab::kRows * Slab::kChunks, kNext = Threads / Slab::kChunks;
  [[maybe_unused]] constexpr int kUnroll = Width == 16 ? (kAll + Threads - 1) / Threads : 1;
  static_assert(Threads % (16 * Slab::kChunks) == 0 || kAll <= Threads);
  const int first = static_cast<int>(threadIdx.x) / Slab::kChunks;
  const int chunk = static_cast<int>(threadIdx.x) % Slab::kChunks;
  const int l = line + (Along ? placed(first) : chunk * 16);
  const int k = from + (Along ? chunk * 16 : placed(first));
  const int inside = max(0, min(Along ? depth - k : lines - l, 16));
  const int rows = Along ? lines - l : depth - k;
  const long long next = kNext * (Along ? matrix.line : matrix.depth);
  const T* at = matrix.data + l * matrix.line + k * matrix.depth;
#pragma unroll kUnroll
  for (int i = 0; i * Threads < kAll; ++i, at += next) {
    if (kAll % Threads != 0 && first + i * kNext >= Slab::kRows) break;
    load_chunk<Width, Along>(to + Slab::at(first + i * kNext, chunk), matrix, at,
                             i * kNext < rows ? inside : 0);
  }
}

template <typename Slab, bool Along, int Threads, typename T>
__device__ __forceinline__ void load_slab(char* to, const IntegerMatrix<T>& matrix, int line,
                                          int lines, int from, int depth) {
  if (matrix.width == 16) {
    load_slab<Slab, Along, Threads, 16>(to, matrix, line, lines, from, depth);
  } else if (matrix.width == 8) {
    load_slab<Slab, Along, Threads, 8>(to, matrix, line, lines, from, depth);
  } else if (matrix.width == 4) {
    load_slab<Slab, Along, Threads, 4>(to, matrix, line, lines, from, depth);
  } else {
    load_slab<Slab, Along, Threads, 1>(to, matrix, line, lines, from, depth);
  }
}

// Words of lines 2g and 2g + 1 of the pairs that ldmatrix.trans gives to lane 4g + q: the elements
// 4q to 4q + 3.
__device__ __forceinline__ unsigned even_line(unsigned first, unsigned second) {
  return __byte_perm(first, second, 0x6420);
}
__device__ __forceinline__ unsigned odd_line(unsigned first, unsigned second) {
  return __byte_perm(first, second, 0x7531);
}

// The first operand of an instruction: 16 lines from `line` on, 32 elements from `depth` on. Lane
// 4g + q has lines fragment_line(g, 0) and fragment_line(g, 1).
template <typename Slab, bool Along>
__device__ __forceinline__ void load_rows(unsigned (&a)[4], unsigned slab, int line, int depth) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  if constexpr (Along) {
    ptx_load_matrix(a, slab + Slab::at(line + (lane & 15), depth / 16 + (lane >> 4)));
  } else {
    unsigned r[4];
    ptx_load_matrix_transposed(r, slab + Slab::at(depth + lane, line / 16));
    a[0] = even_line(r[0], r[1]);
    a[1] = odd_line(r[0], r[1]);
    a[2] = even_line(r[2], r[3]);
    a[3] = odd_line(r[2], r[3]);
  }
}

// The second operands of two instructions, of 8 lines each: column g of instruction h is line
// fragment_line(g, h).
template <typename Slab, bool Along>
__device__ __forceinline__ void load_columns(unsigned (&b)[2][2], unsigned slab, int line,
                                             int depth) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  unsigned r[4];
  if constexpr (Along) {
    const int row = (lane & 7) + (lane >> 4) * 8, chunk = (lane >> 3) & 1;
    ptx_load_matrix(r, slab + Slab::at(line + row, depth / 16 + chunk));
    b[0][0] = r[0];
    b[0][1] = r[1];
    b[1][0] = r[2];
    b[1][1] = r[3];
  } else {
    ptx_load_matrix_transposed(r, slab + Slab::at(depth + lane, line / 16));
    b[0][0] = even_line(r[0], r[1]);
    b[0][1] = even_line(r[2], r[3]);
    b[1][0] = odd_line(r[0], r[1]);
    b[1][1] = odd_line(r[2], r[3]);
  }
}

// The line of a group of 16 that row g + 8h of a fragment is.
template <bool Along>
__device__ __forceinline__ int fragment_line(int g, int h) {
  return Along ? placed(g) + 2 * h : 2 * g + h;
}

// `sum` and the four bytes of a word.
__device__ __forceinline__ int add_bytes(signed char, unsigned word, int sum) {
  return __dp4a(static_cast<int>(word), 0x01010101, sum);
}
__device__ __forceinline__ int add_bytes(unsigned char, unsigned word, int sum) {
  return static_cast<int>(__dp4a(word, 0x01010101u, static_cast<unsigned>(sum)));
}
