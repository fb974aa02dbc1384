// Rows of adjacent elements in several passes: a pass reduces all elements of the row to the
// numbers that the next pass needs, and outputs along the row are written at last.
//
// A Config (codegen/rows/multi_pass.cpp) has
//   kLanes, kThreads   threads of a row in a block: 32, or the block's
//   kChunks, kCluster  groups of a thread, of which values are kept, or 0: any number, and no value
//                      is kept; blocks that share a row
//   kFull              all elements of every group exist
// A Form (codegen/rows/pass_functor.h) has the row's arithmetic.
//   kWidth, kPasses    adjacent elements of a group; passes
//   kKeeps, kMapsBack  values are kept between passes; outputs have an element per element
//   kReduces[P], kLists[P]
//                      pass P has reductions beside lists; lists of ranked elements (Picks<I>) that
//                      the passes before P fill
//   Row, Kept, Group   coordinates; kept values of a group; elements of a group that a pass reads
//   Results, Tail      what passes have found; values of a row that outputs need
//   Values             results of a group
//   row_of(number)
//   fetch(tag, group, row, first, valid, vector)
//                      the reads of Keeping, Phase<P>, Picks<I> or Writing
//   keep(kept, group, row, at, v)
//   start(Phase<P>, s, row), lift(Phase<P>, s, kept, group, row, at, v, exists),
//   reduce(Phase<P>, s, over), settle(Phase<P>, s)
//                      identities, and what elements share; one element; over the row's threads by
//                      over.all<Op>(value, slot); references that the pass determines
//   list(Picks<I>), entries(Picks<I>, s), element(Picks<I>, kept, group, row, s, at, v)
//                      a RankedList; its elements in s; the Ranked element `at`
//   finish(s, row), write_rows<Lanes>(s, row, tail, lane),
//   map(y, s, kept, group, row, tail, at, v, exists), put(y, row, first, valid, vector)
// `first` is the first element of a group, of which `valid` exist; `at` is that of number `v`, or
// the row's last. `vector`: groups are aligned.
#pragma once

#include "device/passes.cuh"
#include "device/ptx.cuh"
#include "device/reduce.cuh"
#include "device/types.cuh"

// The passes beside those that reduce. Picks: of the elements of list I.
template <int I>
struct Picks {};
struct Keeping {};
struct Writing {};

// The first `Count` elements in order, values of type T. The reductions of its ranks use the slots
// from `Slot` on in turn.
template <typename T, bool Large, int Count, int Slot>
struct RankedList {
  using Entry = Ranked<T>;
  static constexpr int kCount = Count, kSlot = Slot;
  static __device__ __forceinline__ bool before(const Entry& a, const Entry& b) {
    return ranks_before<Large>(a, b);
  }
  struct Op {
    static __device__ __forceinline__ Entry apply(const Entry& a, const Entry& b) {
      return before(b, a) ? b : a;
    }
  };
};

// The threads that share a row. `slots`: kSlotsBytes of shared memory for each reduction.
template <typename Config>
struct RowThreads {
  static constexpr int kWarps = Config::kLanes / 32;
  static constexpr int kSlotsBytes = kSlotBytes * (kWarps + 1);
  char* slots;

  template <typename Op, typename T>
  __device__ __forceinline__ T all(T value, int slot) const {
    if constexpr (Config::kLanes == 32) return warp_reduce<Op>(value);
#if __CUDA_ARCH__ >= 900
    if constexpr (Config::kCluster > 1) {
      return cluster_reduce<Config::kCluster, kWarps, Op>(value, slots + slot * kSlotsBytes);
    }
#endif
    return block_reduce<kWarps, Op>(value, slots + slot * kSlotsBytes);
  }
};

// Groups whose values are kept.
template <typename Config>
constexpr int kKeptGroups = Config::kChunks > 0 ? Config::kChunks : 1;

// A search for the element of a list that comes after the last one found.
template <int I, typename Form>
struct Search {
  using Own = decltype(Form::list(Picks<I>{}));
  using Entry = typename Own::Entry;
  const typename Form::Results& s;
  int rank;
  Entry last, best;
};

// One element of a pass: its values are kept, it is added to the results, or it is a candidate for
// a list.
template <typename Form>
__device__ __forceinline__ void visit(const Form& form, Keeping, typename Form::Results&,
                                      typename Form::Kept& kept, const typename Form::Group& group,
                                      const typename Form::Row& row, long long at, int v, bool) {
  form.keep(kept, group, row, at, v);
}
template <int P, typename Form>
__device__ __forceinline__ void visit(const Form& form, Phase<P> pass, typename Form::Results& s,
                                      const typename Form::Kept& kept,
                                      const typename Form::Group& group,
                                      const typename Form::Row& row, long long at, int v,
                                      bool exists) {
  form.lift(pass, s, kept, group, row, at, v, exists);
}
template <int I, typename Form>
__device__ __forceinline__ void visit(const Form& form, Picks<I> picks, Search<I, Form>& search,
                                      const typename Form::Kept& kept,
                                      const typename Form::Group& group,
                                      const typename Form::Row& row, long long at, int v,
                                      bool exists) {
  using Own = typename Search<I, Form>::Own;
  const typename Own::Entry here = form.element(picks, kept, group, row, search.s, at, v);
  if (exists && (search.rank == 0 || Own::before(search.last, here)) &&
      Own::before(here, search.best)) {
    search.best = here;
  }
}

template <typename Config, typename Tag, typename Target, typename Form>
__device__ __forceinline__ void visit_group(const Form& form, Tag tag, Target& target,
                                            typename Form::Kept& kept,
                                            const typename Form::Row& row, long long first,
                                            long long length, bool vector) {
  typename Form::Group group;
  form.fetch(tag, group, row, first, length - first, vector);
#pragma unroll
  for (int v = 0; v < Form::kWidth; ++v) {
    const long long at = Config::kFull ? first + v : min_of(first + v, length - 1);
    visit(form, tag, target, kept, group, row, at, v, Config::kFull || v < length - first);
  }
}

// Results that outputs need.
template <typename Form>
struct Outcome {
  const typename Form::Results& s;
  const typename Form::Tail& tail;
};

template <typename Config, typename Form>
__device__ __forceinline__ void visit_group(const Form& form, Writing tag, Outcome<Form>& outcome,
                                            typename Form::Kept& kept,
                                            const typename Form::Row& row, long long first,
                                            long long length, bool vector) {
  typename Form::Group group;
  form.fetch(tag, group, row, first, length - first, vector);
  typename Form::Values y;
#pragma unroll
  for (int v = 0; v < Form::kWidth; ++v) {
    const long long at = Config::kFull ? first + v : min_of(first + v, length - 1);
    form.map(y, outcome.s, kept, group, row, outcome.tail, at, v,
             Config::kFull || v < length - first);
  }
  form.put(y, row, first, length - first, vector);
}

// A pass over the groups of a thread.
template <typename Config, typename Tag, typename Target, typename Form>
__device__ __forceinline__ void visit_groups(const Form& form, Tag tag, Target& target,
                                             typename Form::Kept (&kept)[kKeptGroups<Config>],
                                             const typename Form::Row& row, int lane,
                                             long long length, bool vector) {
  constexpr int kStep = Config::kLanes * Config::kCluster * Form::kWidth;
  if constexpr (Config::kChunks > 0) {
#pragma unroll
    for (int c = 0; c < Config::kChunks; ++c) {
      const long long first = c * (0ll + kStep) + lane * Form::kWidth;
      if (first < length) {
        visit_group<Config>(form, tag, target, kept[c], row, first, length, vector);
      }
    }
  } else {
    for (long long first = lane * (0ll + Form::kWidth); first < length; first += kStep) {
      visit_group<Config>(form, tag, target, kept[0], row, first, length, vector);
    }
  }
}

// Finds the elements of the lists from I up to End, in a pass for each.
template <typename Config, int I, int End, typename Form>
__device__ __forceinline__ void fill_lists(const Form& form, typename Form::Results& s,
                                           typename Form::Kept (&kept)[kKeptGroups<Config>],
                                           const typename Form::Row& row,
                                           const RowThreads<Config>& over, int lane,
                                           long long length, bool vector) {
  if constexpr (I < End) {
    using Own = typename Search<I, Form>::Own;
    typename Own::Entry last{0, -1};
#pragma unroll 1
    for (int rank = 0; rank < Own::kCount; ++rank) {
      Search<I, Form> search{s, rank, last, {0, -1}};
      visit_groups<Config>(form, Picks<I>{}, search, kept, row, lane, length, vector);
      last = over.template all<typename Own::Op>(search.best, Own::kSlot + (rank & 1));
      form.entries(Picks<I>{}, s)[rank] = last;
    }
    fill_lists<Config, I + 1, End>(form, s, kept, row, over, lane, length, vector);
  }
}

// The passes from P on.
template <typename Config, int P, typename Form>
__device__ __forceinline__ void run_passes(const Form& form, typename Form::Results& s,
                                           typename Form::Kept (&kept)[kKeptGroups<Config>],
                                           const typename Form::Row& row,
                                           const RowThreads<Config>& over, int lane,
                                           long long length, bool vector) {
  if constexpr (P < Form::kPasses) {
    form.start(Phase<P>{}, s, row);
    if constexpr (Form::kReduces[P]) {
      visit_groups<Config>(form, Phase<P>{}, s, kept, row, lane, length, vector);
      form.reduce(Phase<P>{}, s, over);
    }
    fill_lists<Config, Form::kLists[P], Form::kLists[P + 1]>(form, s, kept, row, over, lane, length,
                                                             vector);
    form.settle(Phase<P>{}, s);
    run_passes<Config, P + 1>(form, s, kept, row, over, lane, length, vector);
  }
}

// Computes the rows of a block, or its part of a row. `slots`: of RowThreads, null for rows in a
// warp.
template <typename Config, typename Form>
__device__ __forceinline__ void reduce_rows(const Form& form, char* slots, long long rows,
                                            long long length, bool vector) {
  long long number = blockIdx.x / Config::kCluster;
  int lane = threadIdx.x;
  if constexpr (Config::kLanes == 32) {
    number = blockIdx.x * (0ll + Config::kThreads / 32) + (threadIdx.x >> 5);
    if (number >= rows) return;
    lane = threadIdx.x & 31;
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (Config::kCluster > 1) lane += ptx_cluster_rank() * Config::kThreads;
#endif
  const typename Form::Row row = form.row_of(number);
  typename Form::Kept kept[kKeptGroups<Config>];
  typename Form::Results s;
  if constexpr (Form::kKeeps) {
    visit_groups<Config>(form, Keeping{}, s, kept, row, lane, length, vector);
  }
  run_passes<Config, 0>(form, s, kept, row, RowThreads<Config>{slots}, lane, length, vector);
  const typename Form::Tail tail = form.finish(s, row);
  form.template write_rows<Config::kLanes * Config::kCluster>(s, row, tail, lane);
  if constexpr (Form::kMapsBack) {
    Outcome<Form> outcome{s, tail};
    visit_groups<Config>(form, Writing{}, outcome, kept, row, lane, length, vector);
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (Config::kCluster > 1) {
    // No block ends while another reads its shared memory.
    ptx_cluster_arrive();
    ptx_cluster_wait();
  }
#endif
}
