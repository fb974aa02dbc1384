// Rows of which elements are picked by rank; the row's other reductions are folded in the same
// pass. Config and Form are those of row_fold.cuh, with these beside:
//   Lists                       BlockLists or WarpLists: one list for each ranked reduction
//   key(List<I>, kept, words, row, first, v)
//                               the number that orders the elements of a list
//   value(List<I>, row, place)  the value at a position of the row; 0 at kNowhere
//   finish(s, row, lists)       instead of finish(s, row)
#pragma once

#include "device/passes.cuh"
#include "device/ptx_split.cuh"
#include "device/ranking/ranking.cuh"
#include "device/ranking/ranking_block.cuh"
#include "device/row_fold.cuh"

template <int I>
struct List {};

extern __shared__ __align__(16) char list_smem[];

// The positions of a list's first elements: place(List<I>, rank), kNowhere where the row is
// shorter.
template <typename... Rankings>
struct BlockLists {
  __device__ __forceinline__ explicit BlockLists(char*) {}
};
template <typename Ranking, typename... Rest>
struct BlockLists<Ranking, Rest...> {
  static constexpr int kBytes = (static_cast<int>(sizeof(typename Ranking::Shared)) + 15) / 16 * 16;
  Ranking ranking;
  BlockLists<Rest...> rest;
  __device__ __forceinline__ explicit BlockLists(char* memory)
      : ranking(*reinterpret_cast<typename Ranking::Shared*>(memory)), rest(memory + kBytes) {}
  __device__ __forceinline__ unsigned place(List<0>, long long rank) const {
    return ranking.shared.list[rank].position();
  }
  template <int I>
  __device__ __forceinline__ unsigned place(List<I>, long long rank) const {
    return rest.place(List<I - 1>{}, rank);
  }
};

// The first Count elements by keys of type Key.
template <typename Key_, int Count>
struct WarpList {
  using Key = Key_;
  static constexpr int kCount = Count;
};
template <typename... Own>
struct WarpLists {
  static constexpr int kCount = 0;
  __device__ __forceinline__ explicit WarpLists(unsigned*) {}
};
template <typename Own, typename... Rest>
struct WarpLists<Own, Rest...> {
  static constexpr int kCount = Own::kCount + WarpLists<Rest...>::kCount;
  unsigned* places;
  WarpLists<Rest...> rest;
  __device__ __forceinline__ explicit WarpLists(unsigned* memory)
      : places(memory), rest(memory + Own::kCount) {}
  __device__ __forceinline__ unsigned place(List<0>, long long rank) const { return places[rank]; }
  template <int I>
  __device__ __forceinline__ unsigned place(List<I>, long long rank) const {
    return rest.place(List<I - 1>{}, rank);
  }
};

__device__ __forceinline__ long long position_of(unsigned place) {
  return place == kNowhere ? 0ll : static_cast<long long>(place);
}

// Keys of a loaded tile, 0 for missing elements, and the bits of those that exist.
template <typename Config, bool Vector, int I, typename Form, typename Key>
__device__ __forceinline__ void make_keys(const Form& form,
                                          Key (&keys)[Config::kChunks * Form::kWidth],
                                          unsigned& there, const RowTile<Config, Form>& tile,
                                          const typename Form::Row& row, int lane, int shift,
                                          int start) {
  constexpr int kWidth = Form::kWidth;
#pragma unroll
  for (int i = 0; i < Config::kChunks * kWidth; ++i) keys[i] = 0;
#pragma unroll
  for (int c = 0; c < Config::kChunks; ++c) {
    const int first = first_of<Config, Form>(start, c, lane, shift);
    if (outside<Config, Vector>(first, row.extent)) continue;
    typename Form::Words words;
    form.template fetch<Vector, Reads::Folded>(words, row, c, first);
#pragma unroll
    for (int v = 0; v < kWidth; ++v) {
      if (!exists<Vector>(first + v, row.extent)) continue;
      keys[c * kWidth + v] = form.key(List<I>{}, tile.kept[c], words, row, first, v);
      there |= 1u << (c * kWidth + v);
    }
  }
}

// Where element i of a thread's tile stands in the row.
template <typename Config, typename Form>
__device__ __forceinline__ unsigned position_in(const typename Form::Row& row, int lane, int shift,
                                                int start, int i) {
  constexpr int kWidth = Form::kWidth;
  return static_cast<unsigned>(row.begin + first_of<Config, Form>(start, i / kWidth, lane, shift) +
                               i % kWidth);
}

// Ranks a row that is one tile of a warp's lanes; `tile` is loaded.
template <typename Config, bool Vector, int I, typename Form, typename Own, typename... Rest>
__device__ __forceinline__ void rank_tile(const Form& form, const WarpLists<Own, Rest...>& lists,
                                          const RowTile<Config, Form>& tile,
                                          const typename Form::Row& row, int lane, int shift) {
  typename Own::Key keys[Config::kChunks * Form::kWidth];
  unsigned there = 0;
  make_keys<Config, Vector, I>(form, keys, there, tile, row, lane, shift, 0);
  const auto position = [&](int i) { return position_in<Config, Form>(row, lane, shift, 0, i); };
  if constexpr (Config::kLanes == 32) {
    rank_in_warp(keys, there, position, Own::kCount, lists.places);
  } else {
    rank_in_lanes<Config::kLanes>(keys, there, position, Own::kCount, lists.places);
  }
  if constexpr (sizeof...(Rest) > 0) {
    rank_tile<Config, Vector, I + 1>(form, lists.rest, tile, row, lane, shift);
  }
}

// Ranks a block's row, or its segment, and folds it in the pass of the first list.
template <typename Config, bool Vector, int I, typename Form, typename Ranking, typename... Rest>
__device__ __forceinline__ void rank_row(const Form& form, BlockLists<Ranking, Rest...>& lists,
                                         typename Form::Running& t, typename Form::State& s,
                                         RowTile<Config, Form>& tile, const typename Form::Row& row,
                                         int lane, int shift, uint4* staging) {
  lists.ranking.run(
      row.extent, shift,
      [&](int start) { load_tile<Config, Vector>(form, tile, row, lane, shift, start, staging); },
      [&](int start) {
        if constexpr (I == 0 && Form::kPhases > 0) {
          fold_tile<Config, Vector>(form, t, s, tile, row, lane, shift, start);
        }
      },
      [&](int start, typename Ranking::Key(&keys)[Config::kChunks * Form::kWidth],
          unsigned& there) {
        make_keys<Config, Vector, I>(form, keys, there, tile, row, lane, shift, start);
      },
      [&](int start, int i) { return position_in<Config, Form>(row, lane, shift, start, i); });
  lists.ranking.finish();
  if constexpr (sizeof...(Rest) > 0) {
    rank_row<Config, Vector, I + 1>(form, lists.rest, t, s, tile, row, lane, shift, staging);
  }
}

// Stores the lists of a segment, and merges those of all segments of the row. `entries`: one
// pointer for each list.
template <int Threads, typename Ranking, typename... Rest>
__device__ __forceinline__ void store_lists(const BlockLists<Ranking, Rest...>& lists,
                                            unsigned char* const* entries, const RowPlace& place) {
  auto* const to = reinterpret_cast<typename Ranking::Entry*>(*entries) +
                   place.row * place.segments * Ranking::kCount + place.part * Ranking::kCount;
  for (int i = threadIdx.x; i < Ranking::kCount; i += Threads) to[i] = lists.ranking.shared.list[i];
  if constexpr (sizeof...(Rest) > 0) store_lists<Threads>(lists.rest, entries + 1, place);
}
template <typename Ranking, typename... Rest>
__device__ __forceinline__ void merge_lists(BlockLists<Ranking, Rest...>& lists,
                                            unsigned char* const* entries, const RowPlace& place) {
  lists.ranking.merge(reinterpret_cast<const typename Ranking::Entry*>(*entries) +
                          place.row * place.segments * Ranking::kCount,
                      place.segments * Ranking::kCount);
  lists.ranking.finish();
  if constexpr (sizeof...(Rest) > 0) merge_lists(lists.rest, entries + 1, place);
}

template <typename Config, bool Vector, typename Form, typename Memory>
__device__ __forceinline__ void compute_ranks(const Form& form, const Memory& memory,
                                              typename Form::Lists& lists, const RowPlace& place,
                                              const typename Form::Row& row,
                                              unsigned char* const* entries,
                                              typename Form::State* states, unsigned* counter) {
  constexpr bool kFolds = Form::kPhases > 0;
  const int lane = Config::kLanes > 32 ? threadIdx.x : threadIdx.x % Config::kLanes;
  const int shift = form.template shift<Vector>(
      row, Config::kWhole ? kRowTile<Config, Form> - row.extent : Form::kWidth);
  typename Form::State s = form.identity();
  typename Form::Running t;
  RowTile<Config, Form> tile;
  if constexpr (Config::kWhole) {
    load_tile<Config, Vector>(form, tile, row, lane, shift, 0, memory.staging);
    if constexpr (kFolds) fold_tile<Config, Vector>(form, t, s, tile, row, lane, shift, 0);
    rank_tile<Config, Vector, 0>(form, lists, tile, row, lane, shift);
    __syncwarp();
  } else {
    if constexpr (kFolds) form.start(t, s);
    rank_row<Config, Vector, 0>(form, lists, t, s, tile, row, lane, shift, memory.staging);
  }
  if constexpr (kFolds) merge_row<Config>(form, s, memory);
  if constexpr (Config::kPart == RowPart::Segment) {
    if (place.segments > 1) {
      // The block that counts last merges what the others stored.
      store_lists<Config::kThreads>(lists, entries, place);
      if (kFolds && threadIdx.x == 0) states[place.part] = s;
      __shared__ unsigned before;
      __syncthreads();
      if (threadIdx.x == 0) before = ptx_count(counter + place.row, place.segments - 1);
      __syncthreads();
      if (before != place.segments - 1) return;
      merge_lists(lists, entries, place);
      if constexpr (kFolds) merge_segments<Config>(form, s, memory, states, place.segments);
    }
  }
  const typename Form::Tail tail = form.finish(s, row, lists);
  form.template write_rows<Config::kLanes>(row, tail, lane);
  if constexpr (Form::kMapsBack) write_row<Config, Vector>(form, tile, row, tail, lane, shift);
}

// As fold_rows(). `lists`: memory of this block, or of this warp.
template <typename Config, typename Form, typename Memory, typename Lists>
__device__ __forceinline__ void rank_rows(const Form& form, const Memory& memory, Lists lists,
                                          long long rows, long long length, long long segment,
                                          unsigned char* const* entries,
                                          typename Form::State* states, unsigned* counter,
                                          bool vector) {
  const RowPlace place = row_place<Config>(rows, length, segment);
  const typename Form::Row row = form.row_of(place.row, place.begin, place.extent);
  states += place.row * place.segments;
  if constexpr (Config::kVectors) {
    if (vector) {
      return compute_ranks<Config, true>(form, memory, lists, place, row, entries, states, counter);
    }
  }
  compute_ranks<Config, false>(form, memory, lists, place, row, entries, states, counter);
}

// As fold_whole_rows(). `lists`: memory of the row's lanes.
template <typename Config, typename Form, typename Memory, typename Lists>
__device__ __forceinline__ void rank_whole_rows(const Form& form, const Memory& memory, Lists lists,
                                                long long first, long long end, int length,
                                                bool vector) {
  for_whole_rows<Config>(first, end, [&](long long number) {
    const RowPlace place{number, 0, length, 1, 0};
    const typename Form::Row row = form.row_of(number, 0, length);
    if (Config::kVectors && vector) {
      compute_ranks<Config, true>(form, memory, lists, place, row, nullptr, nullptr, nullptr);
    } else {
      compute_ranks<Config, false>(form, memory, lists, place, row, nullptr, nullptr, nullptr);
    }
    __syncwarp();  // the next row's ranks take the place of these
  });
}
