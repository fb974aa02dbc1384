// Reductions along a strided axis while adjacent rows are contiguous in memory: a block has a tile
// of adjacent rows, which its threads load as vectors, and divides the streamed axis among the
// threads of a row. States are merged over the lanes of a warp, then through shared memory.
//
// A Form (codegen/columns/column_functor.h) has the rows' arithmetic:
//   kWidth, kPhases    adjacent rows of a thread; passes over a tile's elements
//   kBeside            so many adjacent rows, a power of two, are one: their states are merged
//   State              of a row, with identity(), merge(s, t) and merged<High, Low>(s)
//   Row, Words, Tail   of a thread's rows: coordinates; loaded words of an element (of the last
//   rows
//                      in place of those behind them, so that no load is conditional); final
//                      results
//   Values             of an element's results in a thread's rows, where kMapsBack
//   row_of(outer, column), set_parts(row, v), read<Reads>(words, row, at)
//   start(t, s), begin(t, s, added), settle<Whole>(Phase<P>, t, s)
//   lift(Phase<P>, t, words, row, at, v), finish(s, row, v), map(y, words, row, tail, at, v)
//                      of the row v of the thread, which has the state t, or the tail
//   put(y, row, at)    stores the results of an element in all rows
//   write_row(row, tail, v), write_rows(row, tails)
//                      store the results of the row v, which exists, and of all rows
#pragma once

#include "device/passes.cuh"
#include "device/ptx.cuh"
#include "device/ptx_split.cuh"
#include "device/reduce.cuh"
#include "device/rows.cuh"
#include "device/types.cuh"

// Threads of a block across the rows and along the streamed axis; elements of a thread in a tile;
// blocks of a cluster, each with a tile. If Across is not a power of two, or over 32, threads from
// Across · Along on are idle. Whole: the tiles hold the row. Filled: so many elements, the first
// ones, every thread has in every tile.
template <int Across_, int Along_, int Chunks_, bool Whole_, int Filled_, RowPart Part_,
          int Cluster_>
struct ColumnTile {
  static constexpr int Across = Across_, Along = Along_, Chunks = Chunks_, Cluster = Cluster_;
  static constexpr int Filled = Filled_;
  static constexpr bool Whole = Whole_;
  static constexpr RowPart Part = Part_;
  // Every warp has a power of two of threads along the axis.
  static constexpr bool ByWarps = Across <= 32 && (Across & (Across - 1)) == 0;
  static constexpr int Threads = (Across * Along + 31) / 32 * 32;
  static constexpr int Shares = ByWarps ? Threads / 32 : Along;  // states of a row in shared memory
};

// Loads N elements from `from`, of which the first `valid` exist. Vector: all exist, and the
// address is aligned to the group.
template <typename T, int N, bool Vector, int W>
__device__ __forceinline__ void load_column(unsigned (&words)[W], const T* from, int valid) {
  constexpr int kBytes = N * static_cast<int>(sizeof(T));
  if constexpr (Vector && kBytes >= 4) {
    load_aligned<T, N, true>(words, from);
  } else {
    gather_words<N>(words, from, 0, valid);
  }
}

// Stores the first `valid` of N values. Vector: all or none.
template <int N, bool Vector, typename T>
__device__ __forceinline__ void store_column(T* to, const ValueOf<T> (&values)[N], int valid) {
  if constexpr (Vector && N * sizeof(T) >= 4) {
    if (valid > 0) store_aligned<N>(to, values);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i < valid) to[i] = Element<T>::put(values[i]);
    }
  }
}
// The same of a member of each of N tails.
template <int N, bool Vector, typename T, typename Tail>
__device__ __forceinline__ void store_member(T* to, const Tail (&tails)[N],
                                             ValueOf<T> Tail::*member, int valid) {
  ValueOf<T> values[N];
#pragma unroll
  for (int v = 0; v < N; ++v) values[v] = tails[v].*member;
  store_column<N, Vector>(to, values, valid);
}

template <typename Tile, typename Form>
class Columns {
 public:
  using State = typename Form::State;
  static constexpr int kWidth = Form::kWidth, kRows = Tile::Across * kWidth;
  static constexpr int kTile = Tile::Along * Tile::Chunks;

  // Groups of `columns` adjacent rows; `begin` and `extent`: the streamed elements of the block.
  __device__ __forceinline__ Columns(const Form& form, State* slots, long long outer,
                                     long long column, int begin, int extent)
      : form_(form),
        slots_(slots),
        x_(threadIdx.x % Tile::Across),
        y_(threadIdx.x / Tile::Across),
        begin_(begin),
        extent_(Tile::ByWarps || y_ < Tile::Along ? extent : 0),
        row_(row_of(form, outer, column + x_ * kWidth)) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) s_[v] = Form::identity();
  }

  // The state of every row of the tile.
  __device__ __forceinline__ void fold() {
    if constexpr (Tile::Whole) {
      fold_tile(0);
    } else {
#pragma unroll 1
      for (int tile = 0; tile < extent_; tile += kTile) fold_tile(tile);
    }
  }

  // Merges the states of all threads of the row, with All of the rows that are one with it as well;
  // every thread gets the result.
  template <bool All>
  __device__ __forceinline__ void merge() {
    constexpr int kAcross = Tile::Across, kShares = Tile::Shares;
    if constexpr (Tile::ByWarps && kAcross < 32 && Tile::Along > 1) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) s_[v] = form_.template merged<16, kAcross>(s_[v]);
    }
    if constexpr (kShares > 1) {
      const bool sends = Tile::ByWarps ? (threadIdx.x & 31) < kAcross : y_ < Tile::Along;
      if (sends) put(slots_ + (Tile::ByWarps ? threadIdx.x >> 5 : y_) * kRows);
      __syncthreads();
      // A lane per state of a row.
      const int share = static_cast<int>(threadIdx.x) % kShares;
#pragma unroll 1
      for (int first = 0; first < kRows; first += Tile::Threads / kShares) {
        const int row = first + static_cast<int>(threadIdx.x) / kShares;
        const State t =
            form_.template merged<kShares / 2, 1>(slots_[share * kRows + min(row, kRows - 1)]);
        if (share == 0 && row < kRows) slots_[row] = t;
      }
      __syncthreads();
      get(slots_);
    }
    if constexpr (All && Form::kBeside > 1) merge_beside();
  }

#if __CUDA_ARCH__ >= 900
  // The same over all blocks of the cluster. Call ptx_cluster_wait() before the block ends.
  __device__ __forceinline__ void merge_cluster() {
    if constexpr (Tile::Shares == 1) {
      if (y_ == 0) put(slots_);
    }
    State* const joint = slots_ + Tile::Shares * kRows;
    ptx_cluster_arrive();
    ptx_cluster_wait();
#pragma unroll 1
    for (int row = threadIdx.x; row < kRows; row += Tile::Threads) {
      State all[Tile::Cluster];
#pragma unroll
      for (unsigned i = 0; i < Tile::Cluster; ++i) all[i] = of_block(slots_ + row, i);
      State t = all[0];
#pragma unroll
      for (unsigned i = 1; i < Tile::Cluster; ++i) t = form_.merge(t, all[i]);
      joint[row] = t;
    }
    ptx_cluster_arrive();
    __syncthreads();
    get(joint);
  }
#endif

  // Stores the states of a segment, by one thread per row.
  __device__ __forceinline__ void store(State* to) const {
    if (y_ == 0) put(to);
  }

  // Merges the states of all `segments`, `stride` states apart.
  __device__ __forceinline__ void merge_segments(const State* from, int segments,
                                                 long long stride) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) s_[v] = Form::identity();
#pragma unroll 1
    for (int segment = y_; segment < segments; segment += Tile::Along) {
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        s_[v] = form_.merge(s_[v], from[segment * stride + x_ * kWidth + v]);
      }
    }
    __syncthreads();
    merge<true>();
  }

  __device__ __forceinline__ void write(bool with_rows) {
    typename Form::Tail tails[kWidth];
#pragma unroll
    for (int v = 0; v < kWidth; ++v) tails[v] = form_.finish(s_[v], row_, v);
    if (with_rows && y_ == 0) {
      form_.write_rows(row_, tails);
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        if (v < row_.valid) form_.write_row(row_, tails[v], v);
      }
    }
    if constexpr (Form::kMapsBack) {
      if constexpr (Tile::Whole) {
        write_tile(0, tails);
      } else {
#pragma unroll 1
        for (int tile = 0; tile < extent_; tile += kTile) {
          load_tile<Reads::Written>(tile);
          write_tile(tile, tails);
        }
      }
    }
  }

 private:
  static __device__ __forceinline__ typename Form::Row row_of(const Form& form, long long outer,
                                                              long long column) {
    typename Form::Row row = form.row_of(outer, column);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) form.set_parts(row, v);
    return row;
  }

  __device__ __forceinline__ void merge_beside() {
    constexpr int kBeside = Form::kBeside, kOwn = kBeside < kWidth ? kBeside : kWidth;
    static_assert(Tile::ByWarps && kRows % kBeside == 0, "neighbours are in one warp");
#pragma unroll
    for (int first = 0; first < kWidth; first += kOwn) {
      State t = s_[first];
#pragma unroll
      for (int v = 1; v < kOwn; ++v) t = form_.merge(t, s_[first + v]);
      if constexpr (kBeside > kWidth) t = form_.template merged<kBeside / kWidth / 2, 1>(t);
#pragma unroll
      for (int v = 0; v < kOwn; ++v) s_[first + v] = t;
    }
  }

  __device__ __forceinline__ void put(State* to) const {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) to[x_ * kWidth + v] = s_[v];
  }
  __device__ __forceinline__ void get(const State* from) {
#pragma unroll
    for (int v = 0; v < kWidth; ++v) s_[v] = from[x_ * kWidth + v];
  }

#if __CUDA_ARCH__ >= 900
  static __device__ __forceinline__ State of_block(const State* own, unsigned rank) {
    union U {
      State value;
      unsigned long long words[sizeof(State) / 8];
      __device__ U() {}
    } u;
    const unsigned address = ptx_map_shared(ptx_shared_address(own), rank);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(State) / 8); ++i) {
      u.words[i] = ptx_load_cluster(address + 8 * i);
    }
    return u.value;
  }
#endif

  __device__ __forceinline__ int at(int tile, int c) const { return tile + c * Tile::Along + y_; }
  __device__ __forceinline__ bool has(int tile, int c) const {
    return c < Tile::Filled || at(tile, c) < extent_;
  }

  template <Reads Set>
  __device__ __forceinline__ void load_tile(int tile) {
#pragma unroll
    for (int c = 0; c < Tile::Chunks; ++c) {
      if (has(tile, c)) {
        form_.template read<Set>(words_[c], row_, begin_ + at(tile, c));
      }
    }
  }

  template <int P>
  __device__ __forceinline__ void fold_phase(typename Form::Running (&t)[kWidth], int tile) {
#pragma unroll
    for (int c = 0; c < Tile::Chunks; ++c) {
      if (!has(tile, c)) continue;
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        form_.lift(Phase<P>{}, t[v], words_[c], row_, begin_ + at(tile, c), v);
      }
    }
#pragma unroll
    for (int v = 0; v < kWidth; ++v) form_.template settle<Tile::Whole>(Phase<P>{}, t[v], s_[v]);
    if constexpr (P + 1 < Form::kPhases) fold_phase<P + 1>(t, tile);
  }

  __device__ __forceinline__ void fold_tile(int tile) {
    load_tile<Reads::Folded>(tile);
    const int left = extent_ - tile - y_;
    const int added = Tile::Filled == Tile::Chunks
                          ? Tile::Chunks
                          : min(max((left + Tile::Along - 1) / Tile::Along, 0), Tile::Chunks);
    typename Form::Running t[kWidth];
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      form_.start(t[v], s_[v]);
      form_.begin(t[v], s_[v], added);
    }
    fold_phase<0>(t, tile);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) s_[v] = t[v].state;
    if constexpr (Tile::Whole && Form::kMapsBack) load_tile<Reads::Remaining>(tile);
  }

  __device__ __forceinline__ void write_tile(int tile, const typename Form::Tail (&tails)[kWidth]) {
#pragma unroll
    for (int c = 0; c < Tile::Chunks; ++c) {
      if (!has(tile, c)) continue;
      typename Form::Values y;
#pragma unroll
      for (int v = 0; v < kWidth; ++v) {
        form_.map(y, words_[c], row_, tails[v], begin_ + at(tile, c), v);
      }
      form_.put(y, row_, begin_ + at(tile, c));
    }
  }

  const Form& form_;
  State* slots_;
  const int x_, y_, begin_, extent_;
  const typename Form::Row row_;
  State s_[kWidth];
  typename Form::Words words_[Tile::Chunks];
};

// Computes a block's tile: some of the `columns` adjacent rows of a group, and a part of the
// streamed axis. `states` and `counter` are for rows in segments.
template <typename Tile, typename Form>
__device__ __forceinline__ void fold_columns(const Form& form, typename Form::State* slots,
                                             long long columns, int length, int segment,
                                             typename Form::State* states, unsigned* counter) {
  using Block = Columns<Tile, Form>;
  constexpr bool kRow = Tile::Part == RowPart::Row;
  constexpr bool kSegment = Tile::Part == RowPart::Segment;
  constexpr bool kFinish = Tile::Part == RowPart::Finish;
  const int segments = kRow ? 1 : max((length + segment - 1) / segment, 1);
  const unsigned groups = gridDim.x / (segments * Tile::Cluster);
  // The tiles folded last are still in the L2 cache.
  const unsigned block = kFinish ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
  const unsigned group = kRow ? block / Tile::Cluster : block % groups;
  const int part = kRow ? 0 : block / groups;
  int begin = part * segment, extent = min(length - begin, segment);
  if constexpr (kRow) extent = length;
  if constexpr (Tile::Cluster > 1) {
    begin = static_cast<int>(block % Tile::Cluster) * Block::kTile;
    extent = min(length - begin, Block::kTile);
  }
  const int tiles = static_cast<int>((columns + Block::kRows - 1) / Block::kRows);
  const unsigned outer = group / tiles;
  Block rows(form, slots, outer, static_cast<long long>(group - outer * tiles) * Block::kRows,
             begin, extent);
  const long long stride = static_cast<long long>(groups) * Block::kRows;
  typename Form::State* const own = states + static_cast<long long>(group) * Block::kRows;
  if constexpr (!kFinish) {
    rows.fold();
    rows.template merge<kRow>();
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (Tile::Cluster > 1) rows.merge_cluster();
#endif
  if constexpr (kSegment || Tile::Part == RowPart::Partials) rows.store(own + part * stride);
  if constexpr (kSegment) {
    // The block that counts last merges the states that the others stored.
    __shared__ unsigned before;
    __syncthreads();
    if (threadIdx.x == 0) before = ptx_count(counter + group, segments - 1);
    __syncthreads();
    if (before != segments - 1) return;
  }
  if constexpr (kSegment || kFinish) rows.merge_segments(own, segments, stride);
  if constexpr (Tile::Part != RowPart::Partials) {
    rows.write(kSegment || (part == 0 && block % Tile::Cluster == 0));
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (Tile::Cluster > 1) ptx_cluster_wait();
#endif
}
