// Rows of adjacent elements in one pass: each thread folds its elements into a state, the states of
// lanes, warps, blocks and segments are merged, and outputs along the row are written.
//
// A Config (codegen/rows/single_pass.cpp) has
//   kLanes, kThreads   threads of a row in a block: a power of two up to 32, or the block's
//   kChunks, kCluster  groups of a thread in a tile; blocks that share a row
//   kWhole, kFull      one tile holds the row; every tile of aligned rows is full
//   kShared            the words of a tile are kept in shared memory, else in registers
//   kVectors           rows may be aligned
//   kPart              what a block computes
// A Form (codegen/rows/row_functor.h) has the row's arithmetic. Vector: groups are aligned vectors
// with all their elements.
//   kWidth, kPhases    adjacent elements of a group; passes over a tile's elements
//   kMapsBack          outputs have an element per element
//   kTransposes        some words of a warp are loaded in coalesced order
//   kRegisters         outputs need words of the tile that are in registers
//   State, Running     of a row; of a tile: the new state, its parts and references
//   Row, Kept, Words   coordinates; words of a group that a tile keeps, and the others
//   Values, Tail       results of a group; values of a row that outputs need
//   row_of(number, begin, extent), shift<Vector>(row, free)
//   keep<Vector>(kept, coalesced, row, c, first), transpose(kept, staging),
//   fetch<Vector, Reads>(words, row, c, first)
//   identity(), merged<High, Low>(s), start(t, s), begin(t, s, added),
//   lift(Phase<P>, t, kept, words, row, first, v), settle<Whole>(Phase<P>, t, s), renew(t)
//   finish(s, row), write_rows<Lanes>(row, tail, lane),
//   map<Vector>(y, kept, words, row, tail, first, v), put<Vector>(y, row, first)
//
// The functions take a thread's row and lane one by one: as members of an object, they would be
// values in memory to the optimizer, which then computes addresses again for every element.
#pragma once

#include "device/cluster_exchange.cuh"
#include "device/math.cuh"
#include "device/passes.cuh"
#include "device/ptx.cuh"
#include "device/ptx_split.cuh"
#include "device/reduce.cuh"
#include "device/rows.cuh"
#include "device/types.cuh"

extern __shared__ __align__(128) uint4 tile_smem[];

// A thread's row, and the streamed elements [begin, begin + extent) of its block.
struct RowPlace {
  long long row, begin;
  int extent;
  unsigned segments, part;
};

template <typename Config>
__device__ __forceinline__ RowPlace row_place(long long rows, long long length, long long segment) {
  if constexpr (Config::kPart != RowPart::Row) {
    const unsigned segments = (length + segment - 1) / segment;
    const unsigned row = blockIdx.x / segments, part = blockIdx.x - row * segments;
    const long long begin = part * segment;
    return {row, begin, static_cast<int>(min_of(length - begin, segment)), segments, part};
  }
  // Threads beyond the last row repeat it, because they take part in the warp's shuffles.
  const long long row = Config::kLanes > 32
                            ? blockIdx.x / Config::kCluster
                            : min_of(blockIdx.x * (0ll + Config::kThreads / Config::kLanes) +
                                         threadIdx.x / Config::kLanes,
                                     rows - 1);
  return {row, 0, static_cast<int>(length), 1, 0};
}

// Shared memory of a block; null where a configuration needs none.
template <typename State, typename Exchange>
struct RowMemory {
  State* slots;        // one per warp
  uint4* staging;      // of the words that this warp transposes
  Exchange* exchange;  // ClusterExchange<State, kCluster>
};

// The words of a tile in registers.
template <typename Config, typename Form>
struct RowTile {
  typename Form::Kept kept[Config::kChunks];
  bool coalesced[Config::kChunks];
  int added;  // elements
};

// Elements of the row in a tile, and from a thread's group to its next.
template <typename Config, typename Form>
constexpr int kRowStep = Config::kLanes* Config::kCluster* Form::kWidth;
template <typename Config, typename Form>
constexpr int kRowTile = kRowStep<Config, Form>* Config::kChunks;

// Groups of a pass whose loads from shared memory overlap.
template <bool Vector>
constexpr int kSharedGroups = Vector ? 2 : 1;

// The first element of group `c` of the tile from `start` on.
template <typename Config, typename Form>
__device__ __forceinline__ int first_of(int start, int c, int lane, int shift) {
  return start + c * kRowStep<Config, Form> + lane * Form::kWidth - shift;
}
template <typename Config, bool Vector>
__device__ __forceinline__ bool outside(int first, int extent) {
  return !(Config::kFull && Vector) && first >= extent;
}
template <bool Vector>
__device__ __forceinline__ bool exists(int at, int extent) {
  return Vector || (at >= 0 && at < extent);
}

// `staging`: of this warp.
template <typename Config, bool Vector, typename Form>
__device__ __forceinline__ void load_tile(const Form& form, RowTile<Config, Form>& tile,
                                          const typename Form::Row& row, int lane, int shift,
                                          int start, uint4* staging) {
  constexpr int kWidth = Form::kWidth;
  tile.added = 0;
#pragma unroll
  for (int c = 0; c < Config::kChunks; ++c) {
    const int first = first_of<Config, Form>(start, c, lane, shift);
    if (outside<Config, Vector>(first, row.extent)) {
      if constexpr (Config::kShared) break;
      continue;
    }
    tile.coalesced[c] = Vector && Form::kTransposes &&
                        first + (32 - static_cast<int>(threadIdx.x & 31)) * kWidth <= row.extent;
    form.template keep<Vector>(tile.kept[c], tile.coalesced[c], row, c, first);
    tile.added += Vector ? kWidth : min(row.extent - first, kWidth) - max(-first, 0);
  }
  if constexpr (Config::kShared) {
    ptx_copy_commit();
    ptx_copy_wait<0>();
  }
  if constexpr (Form::kTransposes) {
#pragma unroll
    for (int c = 0; c < Config::kChunks; ++c) {
      if (outside<Config, Vector>(first_of<Config, Form>(start, c, lane, shift), row.extent)) {
        if constexpr (Config::kShared) break;
        continue;
      }
      if (tile.coalesced[c]) form.transpose(tile.kept[c], staging);
    }
  }
}

template <int P, bool Vector, typename Form>
__device__ __forceinline__ void fold_group(const Form& form, typename Form::Running& t,
                                           const typename Form::Kept& kept,
                                           const typename Form::Row& row, int c, int first) {
  typename Form::Words words;
  form.template fetch<Vector, Reads::Folded>(words, row, c, first);
#pragma unroll
  for (int v = 0; v < Form::kWidth; ++v) {
    if (exists<Vector>(first + v, row.extent)) {
      form.lift(Phase<P>{}, t, kept, words, row, first, v);
    }
  }
}

template <typename Config, int P, bool Vector, typename Form>
__device__ __forceinline__ void fold_phase(const Form& form, typename Form::Running& t,
                                           const typename Form::State& s,
                                           const RowTile<Config, Form>& tile,
                                           const typename Form::Row& row, int lane, int shift,
                                           int start) {
  if constexpr (Config::kShared) {
#pragma unroll kSharedGroups < Vector>
    for (int c = 0; c < Config::kChunks; ++c) {
      const int first = first_of<Config, Form>(start, c, lane, shift);
      if (outside<Config, Vector>(first, row.extent)) break;
      fold_group<P, Vector>(form, t, tile.kept[c], row, c, first);
    }
  } else {
#pragma unroll
    for (int c = 0; c < Config::kChunks; ++c) {
      const int first = first_of<Config, Form>(start, c, lane, shift);
      if (outside<Config, Vector>(first, row.extent)) continue;
      fold_group<P, Vector>(form, t, tile.kept[c], row, c, first);
    }
  }
  form.template settle<Config::kWhole>(Phase<P>{}, t, s);
  if constexpr (P + 1 < Form::kPhases) {
    fold_phase<Config, P + 1, Vector>(form, t, s, tile, row, lane, shift, start);
  }
}

// Folds a loaded tile into s. Unless it holds the row, `t` is that of the tile before, at first of
// start().
template <typename Config, bool Vector, typename Form>
__device__ __forceinline__ void fold_tile(const Form& form, typename Form::Running& t,
                                          typename Form::State& s,
                                          const RowTile<Config, Form>& tile,
                                          const typename Form::Row& row, int lane, int shift,
                                          int start) {
  form.begin(t, s, tile.added);
  fold_phase<Config, 0, Vector>(form, t, s, tile, row, lane, shift, start);
  s = t.state;
  if constexpr (!Config::kWhole) form.renew(t);
}

template <bool Vector, typename Form>
__device__ __forceinline__ void write_group(const Form& form, const typename Form::Kept& kept,
                                            const typename Form::Row& row,
                                            const typename Form::Tail& tail, int c, int first) {
  typename Form::Words words;
  form.template fetch<Vector, Reads::Written>(words, row, c, first);
  typename Form::Values y;
#pragma unroll
  for (int v = 0; v < Form::kWidth; ++v) {
    if (exists<Vector>(first + v, row.extent)) {
      form.template map<Vector>(y, kept, words, row, tail, first, v);
    }
  }
  form.template put<Vector>(y, row, first);
}

template <typename Config, bool Vector, typename Form>
__device__ __forceinline__ void write_tile(const Form& form, const RowTile<Config, Form>& tile,
                                           const typename Form::Row& row,
                                           const typename Form::Tail& tail, int lane, int shift,
                                           int start) {
  if constexpr (Config::kShared && !Form::kRegisters) {
#pragma unroll kSharedGroups < Vector>
    for (int c = 0; c < Config::kChunks; ++c) {
      const int first = first_of<Config, Form>(start, c, lane, shift);
      if (outside<Config, Vector>(first, row.extent)) break;
      write_group<Vector>(form, tile.kept[c], row, tail, c, first);
    }
  } else {
#pragma unroll
    for (int c = 0; c < Config::kChunks; ++c) {
      const int first = first_of<Config, Form>(start, c, lane, shift);
      if (outside<Config, Vector>(first, row.extent)) {
        if constexpr (Config::kShared) break;
        continue;
      }
      write_group<Vector>(form, tile.kept[c], row, tail, c, first);
    }
  }
}

// Outputs of every element.
template <typename Config, bool Vector, typename Form>
__device__ __forceinline__ void write_row(const Form& form, const RowTile<Config, Form>& tile,
                                          const typename Form::Row& row,
                                          const typename Form::Tail& tail, int lane, int shift) {
  if constexpr (Config::kWhole) {
    write_tile<Config, Vector>(form, tile, row, tail, lane, shift, 0);
  } else {
#pragma unroll 1
    for (int start = 0; start < row.extent + shift; start += kRowTile<Config, Form>) {
      write_tile<Config, Vector>(form, tile, row, tail, lane, shift, start);
    }
  }
}

// Merges the states of the block's warps, and of the cluster's blocks.
template <typename Config, typename Form, typename Memory>
__device__ __forceinline__ void merge_warps(const Form& form, typename Form::State& s,
                                            const Memory& memory) {
  constexpr int kWarps = Config::kThreads / 32;
  if ((threadIdx.x & 31) == 0) memory.slots[threadIdx.x >> 5] = s;
  __syncthreads();
  s = form.template merged<kWarps / 2, 1>(memory.slots[threadIdx.x & (kWarps - 1)]);
  if constexpr (Config::kCluster > 1) {
    memory.exchange->exchange(s);
    s = form.template merged<Config::kCluster / 2, 1>(
        memory.exchange->values[threadIdx.x & (Config::kCluster - 1)]);
  }
}

// Merges the states of all threads of a row in the block, or in the cluster.
template <typename Config, typename Form, typename Memory>
__device__ __forceinline__ void merge_row(const Form& form, typename Form::State& s,
                                          const Memory& memory) {
  if constexpr (Config::kLanes > 1) {
    s = form.template merged<(Config::kLanes < 32 ? Config::kLanes : 32) / 2, 1>(s);
  }
  if constexpr (Config::kLanes > 32) merge_warps<Config>(form, s, memory);
}

// Sets s to the merged states of all segments of a row.
template <typename Config, typename Form, typename Memory>
__device__ __forceinline__ void merge_segments(const Form& form, typename Form::State& s,
                                               const Memory& memory,
                                               const typename Form::State* states,
                                               unsigned segments) {
  s = threadIdx.x < segments ? states[threadIdx.x] : form.identity();
  s = form.template merged<16, 1>(s);
  for (unsigned first = Config::kThreads + (threadIdx.x >> 5) * 31; first < segments;
       first += Config::kThreads / 32 * 31) {
    const unsigned one = first + (threadIdx.x & 31) - 1;
    if ((threadIdx.x & 31) != 0) s = one < segments ? states[one] : form.identity();
    s = form.template merged<16, 1>(s);
  }
  merge_warps<Config>(form, s, memory);
}

// Computes a thread's row, of which `states` are those of the segments.
template <typename Config, bool Vector, typename Form, typename Memory>
__device__ __forceinline__ void compute_row(const Form& form, const Memory& memory,
                                            const RowPlace& place, const typename Form::Row& row,
                                            typename Form::State* states, unsigned* counter) {
  constexpr int kTile = kRowTile<Config, Form>;
  // Not of a function or a struct: the optimizer knows its range here, and computes addresses once.
  int lane = Config::kLanes > 32 ? threadIdx.x : threadIdx.x % Config::kLanes;
#if __CUDA_ARCH__ >= 900
  if constexpr (Config::kCluster > 1) lane += ptx_cluster_rank() * Config::kThreads;
#endif
  const int shift =
      form.template shift<Vector>(row, Config::kWhole ? kTile - row.extent : Form::kWidth);
  typename Form::State s = form.identity();
  RowTile<Config, Form> tile;
  if constexpr (Config::kPart == RowPart::Finish) {
    merge_segments<Config>(form, s, memory, states, place.segments);
  } else {
    typename Form::Running t;
    if constexpr (Config::kWhole) {
      load_tile<Config, Vector>(form, tile, row, lane, shift, 0, memory.staging);
      fold_tile<Config, Vector>(form, t, s, tile, row, lane, shift, 0);
    } else {
      form.start(t, s);
#pragma unroll 1
      for (int start = 0; start < row.extent + shift; start += kTile) {
        RowTile<Config, Form> next;
        load_tile<Config, Vector>(form, next, row, lane, shift, start, memory.staging);
        fold_tile<Config, Vector>(form, t, s, next, row, lane, shift, start);
      }
    }
    merge_row<Config>(form, s, memory);
  }
  if constexpr (Config::kPart == RowPart::Partials) {
    if (threadIdx.x == 0) states[place.part] = s;
  }
  if constexpr (Config::kPart == RowPart::Segment) {
    if (place.segments > 1) {
      // The block that counts last merges the states that the others stored.
      if (threadIdx.x == 0) states[place.part] = s;
      __shared__ unsigned before;
      if (threadIdx.x == 0) before = ptx_count(counter + place.row, place.segments - 1);
      __syncthreads();
      if (before != place.segments - 1) return;
      merge_segments<Config>(form, s, memory, states, place.segments);
    }
  }
  if constexpr (Config::kPart != RowPart::Partials) {
    const typename Form::Tail tail = form.finish(s, row);
    form.template write_rows<Config::kLanes * Config::kCluster>(row, tail, lane);
    if constexpr (Form::kMapsBack) {
      write_row<Config, Vector>(form, tile, row, tail, lane, shift);
    }
  }
}

// Computes the rows of a block, or their parts. `states` and `counter` are for rows in segments of
// `segment` elements. `vector`: rows are aligned, where Config::kVectors.
template <typename Config, typename Form, typename Memory>
__device__ __forceinline__ void fold_rows(const Form& form, const Memory& memory, long long rows,
                                          long long length, long long segment,
                                          typename Form::State* states, unsigned* counter,
                                          bool vector) {
#if __CUDA_ARCH__ >= 900
  if constexpr (Config::kCluster > 1) memory.exchange->open();
#endif
  const RowPlace place = row_place<Config>(rows, length, segment);
  const typename Form::Row row = form.row_of(place.row, place.begin, place.extent);
  states += place.row * place.segments;
  if constexpr (Config::kVectors) {
    if (vector) return compute_row<Config, true>(form, memory, place, row, states, counter);
  }
  compute_row<Config, false>(form, memory, place, row, states, counter);
}

// Calls each(row) for the rows [first, end), in all kLanes threads of a row. Threads without a row
// repeat the last one.
template <typename Config, typename Each>
__device__ __forceinline__ void for_whole_rows(long long first, long long end, Each each) {
  constexpr int kRows = 32 / Config::kLanes;  // of a warp
  const long long from = first + (threadIdx.x >> 5) * kRows;
  const int inside = static_cast<int>(threadIdx.x & 31) / Config::kLanes;
  for (long long row = from; row < end; row += Config::kThreads / Config::kLanes) {
    each(min_of(row + inside, end - 1));
  }
}

// Computes the rows [first, end), each whole in kLanes lanes of a warp.
template <typename Config, typename Form, typename Memory>
__device__ __forceinline__ void fold_whole_rows(const Form& form, const Memory& memory,
                                                long long first, long long end, int length,
                                                bool vector) {
  for_whole_rows<Config>(first, end, [&](long long number) {
    const RowPlace place{number, 0, length, 1, 0};
    const typename Form::Row row = form.row_of(number, 0, length);
    if (Config::kVectors && vector) {
      compute_row<Config, true>(form, memory, place, row, nullptr, nullptr);
    } else {
      compute_row<Config, false>(form, memory, place, row, nullptr, nullptr);
    }
  });
}
