// Reductions whose terms join an element of a row with one of a column: ⊕_k f(a[m, k], b[k, n]) for
// any ⊕ and f, on the scalar units. A block computes a tile of rows by columns. Elements are
// computed once per block into shared memory, whatever they cost, and each thread joins its rows
// with its columns in registers.
#pragma once

#include "device/math.cuh"
#include "device/reduce.cuh"

// Rows, Columns: of a block's tile; RowsOfThread, ColumnsOfThread: adjacent ones of a thread.
// Depth: terms between two barriers. RowsByDepth, ColumnsByDepth: consecutive threads compute
// elements of consecutive terms, instead of consecutive rows or columns. Part: sums with more terms
// than that are added in parts of as many, a multiple of Depth; 0: at once.
template <int Rows_, int Columns_, int Depth_, int RowsOfThread_, int ColumnsOfThread_,
          bool RowsByDepth_, bool ColumnsByDepth_, int Part_>
struct ContractionTile {
  static constexpr int Rows = Rows_, Columns = Columns_, Depth = Depth_, Part = Part_;
  static constexpr int RowsOfThread = RowsOfThread_, ColumnsOfThread = ColumnsOfThread_;
  static constexpr bool RowsByDepth = RowsByDepth_, ColumnsByDepth = ColumnsByDepth_;
  static constexpr int Across = Columns / ColumnsOfThread;  // threads of a row of the tile
  static constexpr int Threads = Rows / RowsOfThread * Across;
  static_assert(Rows % RowsOfThread == 0 && Columns % ColumnsOfThread == 0);
  static_assert(Rows * Depth % Threads == 0 && Columns * Depth % Threads == 0);
  static_assert(Part % Depth == 0);
};

// Of one product; there are `batch` of them, one after the other.
struct ContractionSizes {
  long long batch, rows, columns, depth;
};

// The elements of `Lines` rows or columns at Depth terms. Lines are padded, so that stores of
// consecutive terms fall into different banks, and stay vectors.
template <typename T, int Lines, int Depth>
struct ContractionStage {
  static constexpr int kPad = sizeof(T) < 16 ? 16 / static_cast<int>(sizeof(T)) : 1;
  T elements[Depth][Lines + kPad];
};

// A thread's share of the elements of a stage.
template <typename T, int Lines, int Depth, int Threads, bool ByDepth>
struct ContractionShare {
  static constexpr int kCount = Lines * Depth / Threads;
  T elements[kCount];

  static __device__ __forceinline__ int line(int i) {
    const int number = i * Threads + static_cast<int>(threadIdx.x);
    return ByDepth ? number / Depth : number % Lines;
  }
  static __device__ __forceinline__ int term(int i) {
    const int number = i * Threads + static_cast<int>(threadIdx.x);
    return ByDepth ? number % Depth : number / Lines;
  }
  // Elements beyond the last line or term repeat it.
  template <class Element>
  __device__ __forceinline__ void compute(long long first_line, long long lines,
                                          long long first_term, long long terms,
                                          const Element& element) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      elements[i] =
          element(min_of(first_line + line(i), lines - 1), min_of(first_term + term(i), terms - 1));
    }
  }
  __device__ __forceinline__ void store(ContractionStage<T, Lines, Depth>& to) const {
#pragma unroll
    for (int i = 0; i < kCount; ++i) to.elements[term(i)][line(i)] = elements[i];
  }
};

// The results of a thread so far.
template <class Tile, class Op, typename T>
struct ContractionSums {
  T sums[Tile::RowsOfThread][Tile::ColumnsOfThread];

  __device__ __forceinline__ void fill(T value) {
#pragma unroll
    for (int i = 0; i < Tile::RowsOfThread; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::ColumnsOfThread; ++j) sums[i][j] = value;
    }
  }
  __device__ __forceinline__ void join(const ContractionSums& other) {
#pragma unroll
    for (int i = 0; i < Tile::RowsOfThread; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::ColumnsOfThread; ++j) {
        sums[i][j] = Op::template apply<T>(sums[i][j], other.sums[i][j]);
      }
    }
  }
  // The term at `depth` of the stages.
  template <class RowStage, class ColumnStage, class Term>
  __device__ __forceinline__ void add(const RowStage& rows, const ColumnStage& columns, int row,
                                      int column, int depth, const Term& term) {
#pragma unroll
    for (int i = 0; i < Tile::RowsOfThread; ++i) {
      const auto a = rows.elements[depth][row + i];
#pragma unroll
      for (int j = 0; j < Tile::ColumnsOfThread; ++j) {
        const auto b = columns.elements[depth][column + j];
        sums[i][j] = Op::template apply<T>(sums[i][j], term(a, b));
      }
    }
  }
};

// Every result of `sizes`.
//   row(batch, m, k), column(batch, n, k)   elements
//   term(a, b)                              the term of a row's and a column's element
//   finish(batch, m, n, result)             stores it
// `rows` and `columns` are the block's shared memory. All threads of a block call it.
template <class Tile, class Op, typename T, class A, class B, class Row, class Column, class Term,
          class Finish>
__device__ __forceinline__ void contract(const ContractionSizes& sizes, T identity,
                                         ContractionStage<A, Tile::Rows, Tile::Depth>& rows,
                                         ContractionStage<B, Tile::Columns, Tile::Depth>& columns,
                                         const Row& row, const Column& column, const Term& term,
                                         const Finish& finish) {
  const long long across = (sizes.columns + Tile::Columns - 1) / Tile::Columns;
  const long long tiles = (sizes.rows + Tile::Rows - 1) / Tile::Rows * across;
  const int own_row = static_cast<int>(threadIdx.x) / Tile::Across * Tile::RowsOfThread;
  const int own_column = static_cast<int>(threadIdx.x) % Tile::Across * Tile::ColumnsOfThread;
  ContractionShare<A, Tile::Rows, Tile::Depth, Tile::Threads, Tile::RowsByDepth> a;
  ContractionShare<B, Tile::Columns, Tile::Depth, Tile::Threads, Tile::ColumnsByDepth> b;
  for (long long tile = blockIdx.x; tile < sizes.batch * tiles; tile += gridDim.x) {
    const long long batch = tile / tiles, in_batch = tile - batch * tiles;
    const long long first_row = in_batch / across * Tile::Rows;
    const long long first_column = in_batch % across * Tile::Columns;
    const auto compute = [&](long long k) {
      a.compute(first_row, sizes.rows, k, sizes.depth,
                [&](long long m, long long at) { return row(batch, m, at); });
      b.compute(first_column, sizes.columns, k, sizes.depth,
                [&](long long n, long long at) { return column(batch, n, at); });
    };
    ContractionSums<Tile, Op, T> sums, parts;
    sums.fill(identity);
    if constexpr (Tile::Part > 0) parts.fill(identity);
    if (sizes.depth > 0) compute(0);
#pragma unroll 1
    for (long long k = 0; k < sizes.depth; k += Tile::Depth) {
      __syncthreads();
      a.store(rows);
      b.store(columns);
      __syncthreads();
      if (k + Tile::Depth < sizes.depth) compute(k + Tile::Depth);
      if (k + Tile::Depth <= sizes.depth) {
#pragma unroll
        for (int depth = 0; depth < Tile::Depth; ++depth) {
          sums.add(rows, columns, own_row, own_column, depth, term);
        }
      } else {
        const int left = static_cast<int>(sizes.depth - k);
#pragma unroll 1
        for (int depth = 0; depth < left; ++depth) {
          sums.add(rows, columns, own_row, own_column, depth, term);
        }
      }
      if constexpr (Tile::Part > 0) {
        if ((k + Tile::Depth) % Tile::Part == 0) {
          parts.join(sums);
          sums.fill(identity);
        }
      }
    }
    if constexpr (Tile::Part > 0) {
      parts.join(sums);
      sums = parts;
    }
#pragma unroll
    for (int i = 0; i < Tile::RowsOfThread; ++i) {
#pragma unroll
      for (int j = 0; j < Tile::ColumnsOfThread; ++j) {
        const long long m = first_row + own_row + i, n = first_column + own_column + j;
        if (m < sizes.rows && n < sizes.columns) finish(batch, m, n, sums.sums[i][j]);
      }
    }
  }
}
