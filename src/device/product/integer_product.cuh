// Products of 8-bit integers by the tensor cores, with sums in int32 that wrap around:
//   Σ_k (a − a_zero) · (b − b_zero) = Σ a·b − a_zero · Σ b − b_zero · Σ a + k · a_zero · b_zero,
// so the main loop adds products, and the bytes of each row and column where a zero point needs
// them. A tile goes through a ring of copies in shared memory; warps divide its rows, its columns
// and the contracted axis, which the blocks of a cluster divide too. Sums are exact in any order.
//
// Fragments of mma.m16n8k32 are words of 4 elements along the contracted axis. A matrix that is
// contiguous along that axis has them as they are. Of another one, ldmatrix.trans gives pairs of
// lines at two elements of the axis, and __byte_perm makes words of two such registers.
#pragma once

#include "device/product/integer_tile.cuh"

// Of one element: Σ a·b of each product; Σ a of its row, and Σ b of its column, where the tile has
// them.
template <int Products>
struct IntegerSums {
  int products[Products], row, columns[Products];

  // Σ (a − a_zero) · (b − b_zero) of a product over `depth` elements.
  __device__ __forceinline__ int of(int product, long long a_zero, long long b_zero,
                                    int depth) const {
    const unsigned a = static_cast<unsigned>(a_zero), b = static_cast<unsigned>(b_zero);
    const unsigned column = static_cast<unsigned>(columns[product]);
    return static_cast<int>(static_cast<unsigned>(products[product]) +
                            a * (b * static_cast<unsigned>(depth) - column) -
                            b * static_cast<unsigned>(row));
  }
};

template <typename Tile>
class IntegerProduct {
 public:
  using A = typename Tile::A;
  using B = typename Tile::B;
  static constexpr int kProducts = Tile::Products;
  using Sums = IntegerSums<kProducts>;

  // A column of the tile, and the rows of it that the thread has: every kStep-th.
  struct Lines {
    __device__ __forceinline__ Lines(const IntegerProduct& of, int column, int first)
        : product(of), column(column), first(first) {
#pragma unroll
      for (int p = 0; p < kProducts; ++p) {
        sums[p] = Tile::SumB ? of.line_total(Tile::Rows + p * Tile::Columns + column) : 0;
      }
    }

    template <typename Next>
    __device__ __forceinline__ void each(Next next) const {
      constexpr int kOwn = Tile::Rows / Tile::Blocks, kStep = Tile::Warps / kSide;
      const int start = product.rank() * kOwn;
      const int end = min(start + kOwn, product.rows_ - product.place_.row);
#pragma unroll 2
      for (int row = start + first; row < end; row += kStep) {
        Sums found;
        found.row = Tile::SumA ? product.line_total(row) : 0;
#pragma unroll
        for (int p = 0; p < kProducts; ++p) {
          found.products[p] = product.total(sum_at(p, row, column));
          found.columns[p] = sums[p];
        }
        next(static_cast<long long>(product.place_.row) + row, found);
      }
    }

    const IntegerProduct& product;
    int column, first, sums[kProducts];
  };

  // `memory`: Tile::DataBytes and an int for each line of the tile, aligned to 16 bytes. The
  // product has `rows` rows and `columns` columns; `depth` is the length of the contracted axis.
  __device__ __forceinline__ IntegerProduct(char* memory, const IntegerMatrix<A>& a,
                                            const IntegerMatrix<B> (&b)[kProducts],
                                            const IntegerPlace& place, int rows, int columns,
                                            int depth)
      : memory_(memory), a_(a), place_(place), rows_(rows), columns_(columns), depth_(depth) {
#pragma unroll
    for (int p = 0; p < kProducts; ++p) b_[p] = b[p];
  }

  // The tile's sums, into shared memory.
  __device__ __forceinline__ void multiply() {
    for (int i = threadIdx.x; i < kLines; i += Tile::Threads) lines()[i] = 0;
    clear();
    const int steps = (depth_ + Tile::Depth - 1) / Tile::Depth;
    const int from = steps * rank() / Tile::Blocks, to = steps * (rank() + 1) / Tile::Blocks;
#pragma unroll
    for (int i = 0; i < Tile::Stages - 1; ++i) load(from + i, to, i);
#pragma unroll 1
    for (int step = from; step < to; ++step) {
      const int stage = (step - from) % Tile::Stages;
      ptx_copy_wait<Tile::Stages - 2>();
      __syncthreads();
      load(step + Tile::Stages - 1, to, (stage + Tile::Stages - 1) % Tile::Stages);
      add_stage(ptx_shared_address(memory_) + stage * Tile::StageBytes, step - from);
    }
    ptx_copy_wait<0>();
    __syncthreads();
    if (depth_warp() == 0) store_sums();
    store_lines();
    __syncthreads();
    if constexpr (Tile::DepthWarps > 1) {
      if (depth_warp() > 0) store_sums();
      __syncthreads();
    }
  }

  // Calls finish(column, lines) for each column of the tile, by the threads that have a part of it;
  // their lines.each(next) together call next(row, sums) for each element once.
  template <typename Finish>
  __device__ __forceinline__ void finish(Finish finish) const {
    meet();
    const int first = warp() / kSide;
#pragma unroll 1
    for (int group = warp() % kSide; group < kGroups; group += kSide) {
      const int column = group * 32 + lane();
      if (place_.column + column >= columns_) continue;
      const Lines lines(*this, column, first);
      finish(static_cast<long long>(place_.column) + column, lines);
    }
    meet();
  }

 private:
  using RowSlab = IntegerSlab<Tile::AlongA, Tile::Rows, Tile::Depth>;
  using ColumnSlab = IntegerSlab<Tile::AlongB, Tile::Columns, Tile::Depth>;
  static constexpr int kLines = Tile::Rows + kProducts * Tile::Columns;
  // Groups of columns that lanes finish together; warps that have groups of their own, where the
  // others divide the rows.
  static constexpr int kGroups = Tile::Columns / 32;
  static constexpr int kSide = Tile::Warps < kGroups ? Tile::Warps : kGroups;

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) & 31; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) >> 5; }
  static __device__ __forceinline__ int row_warp() { return warp() % Tile::RowWarps; }
  static __device__ __forceinline__ int column_warp() {
    return warp() / Tile::RowWarps % Tile::ColumnWarps;
  }
  static __device__ __forceinline__ int depth_warp() {
    return warp() / (Tile::RowWarps * Tile::ColumnWarps);
  }
  static __device__ __forceinline__ int rank() {
    return Tile::Blocks > 1 ? static_cast<int>(blockIdx.x % Tile::Blocks) : 0;
  }
  // Of an element in the sums. Rows that are stored together are in different banks.
  static __device__ __forceinline__ int sum_at(int product, int row, int column) {
    return (product * Tile::Rows + row) * Tile::Columns + (column ^ ((row & 1) << 4));
  }
  __device__ __forceinline__ int* sums() const { return reinterpret_cast<int*>(memory_); }
  // Of rows, then of the columns of each product.
  __device__ __forceinline__ int* lines() const {
    return reinterpret_cast<int*>(memory_ + Tile::DataBytes);
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < Tile::RowGroups; ++i) {
      row_sums_[i][0] = row_sums_[i][1] = 0;
#pragma unroll
      for (int p = 0; p < kProducts; ++p) {
#pragma unroll
        for (int j = 0; j < Tile::ColumnGroups; ++j) {
          column_sums_[p][j][0] = column_sums_[p][j][1] = 0;
#pragma unroll
          for (int x = 0; x < 8; ++x) d_[p][i][j][x / 4][x % 4] = 0;
        }
      }
    }
  }

  // A stage of the ring has the rows, then the columns of each b. Steps from `end` on copy nothing.
  __device__ __forceinline__ void load(int step, int end, int stage) const {
    if (step < end) {
      char* to = memory_ + stage * Tile::StageBytes;
      const int from = step * Tile::Depth;
      load_slab<RowSlab, Tile::AlongA, Tile::Threads>(to, a_, place_.row, rows_, from, depth_);
      to += RowSlab::kBytes;
#pragma unroll
      for (int p = 0; p < kProducts; ++p, to += ColumnSlab::kBytes) {
        load_slab<ColumnSlab, Tile::AlongB, Tile::Threads>(to, b_[p], place_.column, columns_, from,
                                                           depth_);
      }
    }
    ptx_copy_commit();
  }

  // The warp's products of a stage. Warps that read the same lines sum them in turns.
  __device__ __forceinline__ void add_stage(unsigned stage, int step) {
    constexpr int kTurns = Tile::Depth / 32 / Tile::DepthWarps;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int depth = (turn * Tile::DepthWarps + depth_warp()) * 32;
      const int number = step * kTurns + turn;
      const bool rows = Tile::SumA && number % Tile::ColumnWarps == column_warp();
      const bool columns = Tile::SumB && number % Tile::RowWarps == row_warp();
      if (rows && columns) {
        add_depth<Tile::SumA, Tile::SumB>(stage, depth);
      } else if (rows) {
        add_depth<Tile::SumA, false>(stage, depth);
      } else if (columns) {
        add_depth<false, Tile::SumB>(stage, depth);
      } else {
        add_depth<false, false>(stage, depth);
      }
    }
  }

  // The products of 32 elements from `depth` on, and the sums of the lines.
  template <bool SumRows, bool SumColumns>
  __device__ __forceinline__ void add_depth(unsigned stage, int depth) {
    unsigned a[Tile::RowGroups][4];
#pragma unroll
    for (int i = 0; i < Tile::RowGroups; ++i) {
      load_rows<RowSlab, Tile::AlongA>(a[i], stage, (row_warp() * Tile::RowGroups + i) * 16, depth);
    }
    if constexpr (SumRows) add_rows(a);
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
      const unsigned slab = stage + RowSlab::kBytes + p * ColumnSlab::kBytes;
#pragma unroll
      for (int j = 0; j < Tile::ColumnGroups; ++j) {
        unsigned b[2][2];
        load_columns<ColumnSlab, Tile::AlongB>(
            b, slab, (column_warp() * Tile::ColumnGroups + j) * 16, depth);
        if constexpr (SumColumns) add_columns(column_sums_[p][j], b);
#pragma unroll
        for (int i = 0; i < Tile::RowGroups; ++i) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            IntegerMma<A, B>::add(d_[p][i][j][h], a[i], b[h][0], b[h][1]);
          }
        }
      }
    }
  }

  __device__ __forceinline__ void add_rows(const unsigned (&a)[Tile::RowGroups][4]) {
#pragma unroll
    for (int i = 0; i < Tile::RowGroups; ++i) {
#pragma unroll
      for (int x = 0; x < 4; ++x) {
        row_sums_[i][x % 2] = add_bytes(A(), a[i][x], row_sums_[i][x % 2]);
      }
    }
  }

  static __device__ __forceinline__ void add_columns(int (&sums)[2], const unsigned (&b)[2][2]) {
#pragma unroll
    for (int x = 0; x < 4; ++x) sums[x / 2] = add_bytes(B(), b[x / 2][x % 2], sums[x / 2]);
  }

  // The warp's sums: stored by the first of the warps that divide the contracted axis, added by the
  // others.
  __device__ __forceinline__ void store_sums() const {
    const int g = lane() >> 2, q = lane() & 3;
#pragma unroll
    for (int p = 0; p < kProducts; ++p) {
#pragma unroll
      for (int i = 0; i < Tile::RowGroups; ++i) {
#pragma unroll
        for (int j = 0; j < Tile::ColumnGroups; ++j) {
          const int(&d)[2][4] = d_[p][i][j];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const int row =
                (row_warp() * Tile::RowGroups + i) * 16 + fragment_line<Tile::AlongA>(g, r);
            const int column = (column_warp() * Tile::ColumnGroups + j) * 16 + 4 * q;
            // Sums of the fragments' columns 2q and 2q + 1.
            const int second = Tile::AlongB ? d[0][2 * r + 1] : d[1][2 * r];
            const int third = Tile::AlongB ? d[1][2 * r] : d[0][2 * r + 1];
            add_to(sums() + sum_at(p, row, column), d[0][2 * r], second, third, d[1][2 * r + 1]);
          }
        }
      }
    }
  }

  static __device__ __forceinline__ void add_to(int* to, int x, int y, int z, int w) {
    if (depth_warp() == 0) {
      *reinterpret_cast<int4*>(to) = make_int4(x, y, z, w);
    } else {
      atomicAdd(to, x);
      atomicAdd(to + 1, y);
      atomicAdd(to + 2, z);
      atomicAdd(to + 3, w);
    }
  }

  __device__ __forceinline__ void store_lines() const {
    if constexpr (Tile::SumA) {
#pragma unroll
      for (int i = 0; i < Tile::RowGroups; ++i) {
        add_line<Tile::AlongA>((row_warp() * Tile::RowGroups + i) * 16, row_sums_[i]);
      }
    }
    if constexpr (Tile::SumB) {
#pragma unroll
      for (int p = 0; p < kProducts; ++p) {
#pragma unroll
        for (int j = 0; j < Tile::ColumnGroups; ++j) {
          add_line<Tile::AlongB>(
              Tile::Rows + p * Tile::Columns + (column_warp() * Tile::ColumnGroups + j) * 16,
              column_sums_[p][j]);
        }
      }
    }
  }

  // Adds the sums of four lanes, which have the elements of a line, to the line's.
  template <bool Along>
  __device__ __forceinline__ void add_line(int group, const int (&own)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int sum = own[h];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      const int line = fragment_line<Along>(lane() >> 2, h);
      if ((lane() & 3) == 0) atomicAdd(lines() + group + line, sum);
    }
  }

  // All blocks of the cluster.
  static __device__ __forceinline__ void meet() {
#if __CUDA_ARCH__ >= 900
    if constexpr (Tile::Blocks > 1) {
      ptx_cluster_arrive();
      ptx_cluster_wait();
    }
#endif
  }

  // The sum of the blocks' numbers at a place of their memory.
  __device__ __forceinline__ int total(int at) const {
#if __CUDA_ARCH__ >= 900
    if constexpr (Tile::Blocks > 1) {
      const unsigned own = ptx_shared_address(sums() + at);
      int parts[Tile::Blocks], sum = 0;
#pragma unroll
      for (unsigned block = 0; block < Tile::Blocks; ++block) {
        parts[block] = ptx_load_cluster_int(ptx_map_shared(own, block));
      }
#pragma unroll
      for (int part : parts) sum += part;
      return sum;
    }
#endif
    return sums()[at];
  }
  __device__ __forceinline__ int line_total(int line) const {
    return total(Tile::DataBytes / static_cast<int>(sizeof(int)) + line);
  }

  char* memory_;
  IntegerMatrix<A> a_;
  IntegerMatrix<B> b_[kProducts];
  IntegerPlace place_;
  int rows_, columns_, depth_;
  int d_[kProducts][Tile::RowGroups][Tile::ColumnGroups][2][4];
  int row_sums_[Tile::RowGroups][2], column_sums_[kProducts][Tile::ColumnGroups][2];
};
