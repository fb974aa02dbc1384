// Attention on sm_90a for head sizes beyond the registers of one warpgroup (wide.cuh): a block has
// 64 rows and a segment of the keys, which a producer loads tile by tile; both consumer warpgroups
// keep the state of the rows, and each has half of the value columns.
//
// A Config is that of large_head_tiles.cuh.
// A Form has that of score_fold.cuh and merge.cuh; visited, copy_query, copy_key and copy_value of
// hopper_tiles.cuh; and
//   kExchanges             a reduction of some phase needs the keys of both warpgroups
//   exchanges(W), put(W, to, stride, part), join(W, part, left, right, stride)
//                          whether the scalars of a Phase<P>, or those of which lanes have parts
//                          until the end (Rest), are of both warpgroups; stores those of a part;
//                          joins those of both
//   put_scalars, put_references(to, stride, s), get_scalars, get_references(s, from, stride)
#pragma once

#include "device/attention/cluster_merge.cuh"
#include "device/attention/large_head_tiles.cuh"
#include "device/attention/row_merge.cuh"
#include "device/attention/score_fold.cuh"
#include "device/key_tiles.cuh"

// The scalars of which each lane has a part until the end.
struct Rest {};

template <typename Config, typename Form, typename Visited>
struct WideBlock {
  using T = typename Config::T;
  using Memory = WideMemory<Config, Form>;
  using State = typename Form::State;
  using Row = typename Form::Row;
  static constexpr int kParts = Memory::kParts;
  static constexpr bool kApart = Memory::kApart, kAlone = Config::kScorers == 1;
  struct Group {
    static constexpr int kKeys = Config::kKeys / Config::kScorers;
    static constexpr int kColumns = Config::kGroupColumns;
  };
  using Rows = ScoreRows<Group, Form>;
  using Sums = float[Group::kColumns / 8][4];
  using Values = float[Group::kKeys / 8][4];
  using Weights = unsigned[Group::kKeys / 16][4];

  const Form& form;
  const Memory& memory;
  const Row& block;
  const WidePlace& place;
  const WideTiles<Visited>& of;
  const long long lines, keys;
  const int tiles = of.tiles;

  __device__ __forceinline__ int first_key(int use) const {
    return of.template first_key<Config::kKeys>(use);
  }

  __device__ __forceinline__ void consume(int group, const WideSegments& segments) const {
    const int tile_row = (threadIdx.x >> 5 & 3) * 16 + ((threadIdx.x & 31) >> 2);
    const Rows rows = {form, block, place.first_row + tile_row, tile_row, lines, keys};
    State states[2];
    Sums o;
    rows.clear_state(states, o);
    if constexpr (kAlone) {
      if (group == 0) {
        score(rows, states, o);
      } else {
        follow(rows, states, o);
      }
    } else {
      fold_tiles(rows, group, states, o);
    }
    finish(rows, group, segments, states, o);
  }

 private:
  __device__ __forceinline__ bool has_pair_0() const { return (threadIdx.x & 3) == 0; }
  __device__ __forceinline__ int valid(int use) const {
    return static_cast<int>(min_of(keys - first_key(use), 1ll * Config::kKeys));
  }

  // Reduces the scalars of W over both warpgroups.
  template <typename W>
  __device__ __forceinline__ void exchange(W, int group, int tile_row, State (&parts)[2]) const {
    if constexpr (Form::exchanges(W{})) {
      float* const place = memory.reduced() + tile_row;
      if (has_pair_0()) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          Form::put(W{}, place + group * kWideRows + h * 8, 2 * kWideRows, parts[h]);
        }
      }
      ptx_named_sync(kWideReduced, kWideThreads);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Form::join(W{}, parts[h], place + h * 8, place + kWideRows + h * 8, 2 * kWideRows);
      }
    }
  }
  struct Exchange {
    const WideBlock& block;
    int group, tile_row;
    template <typename P>
    __device__ __forceinline__ void operator()(P, State (&parts)[2]) const {
      if constexpr (!kAlone) block.exchange(P{}, group, tile_row, parts);
    }
  };

  __device__ __forceinline__ void fold(const Rows& rows, int group, int use, State (&next)[2],
                                       const State (&states)[2], Values& s) const {
    const int first = first_key(use);
    const int own = first + (kAlone ? 0 : group * Group::kKeys);
    const int last_row = static_cast<int>(min_of(place.first_row + (kWideRows - 1ll), lines - 1));
    rows.fold(next, states, s, {first, Config::kKeys, own, place.first_row, last_row, nullptr, 0},
              true, Exchange{*this, group, rows.tile_row});
  }

  // Parts [P, End) of the scores of a tile, one after the other, as K (and for the first tile Q)
  // arrives.
  template <int P, int End, bool First>
  __device__ __forceinline__ void add_parts(Values& s, int use, unsigned q, unsigned k) const {
    if constexpr (P < End) {
      constexpr int kPartColumns = Memory::kPartColumns, kLeft = Config::kDepth - P * kPartColumns;
      if constexpr (First) memory.q_ring().wait_full(P);
      memory.k_ring().wait_full(use * kParts + P);
      ptx_product_fence();
      add_scores < T, kLeft<kPartColumns ? kLeft : kPartColumns, Group::kKeys>(
                          s, q + P * Config::kPartSlabs * Memory::kQuerySlab, Memory::kQuerySlab,
                          k + P * Config::kPartSlabs * Memory::kKeySlab, Memory::kKeySlab, P > 0);
      add_parts<P + 1, End, First>(s, use, q, k);
    }
  }
  template <int Begin, int End, bool First>
  __device__ __forceinline__ void start_parts(Values& s, int group, int use) const {
    if constexpr (Begin < End) {
      const int own = kAlone ? 0 : group * Group::kKeys;
      const unsigned k = opaque_address(memory.key(use) + own * kSlabRowBytes);
      const unsigned q = opaque_address(memory.tiles());
      add_parts<Begin, End, First>(s, use, q, k);
      ptx_product_commit();
    }
  }
  __device__ __forceinline__ void release_keys(int use) const {
#pragma unroll
    for (int p = 0; p < kParts; ++p) memory.k_ring().release(use * kParts + p);
  }

  // The address of the warpgroup's value columns.
  __device__ __forceinline__ unsigned values(int group, int use) const {
    if constexpr (kApart) memory.v_ring().wait_full(use);
    return opaque_address(memory.value(use) +
                          group * (Group::kColumns / kSlabColumns) * Memory::kKeySlab);
  }

  static __device__ __forceinline__ void adopt(State (&states)[2], const State (&next)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) states[h] = next[h];
  }

  // Both warpgroups compute scores. The tensor cores multiply the values of one tile, then start
  // the scores of the next.
  __device__ __forceinline__ void fold_tiles(const Rows& rows, int group, State (&states)[2],
                                             Sums& o) const {
    if (tiles <= 0) return;
    Values s;
    Weights p;
    State next[2];
    start_parts<0, kParts, true>(s, group, 0);
    wait_products<0>(s);
    if constexpr (kApart) release_keys(0);
    fold(rows, group, 0, next, states, s);
    publish(rows, group, states, next, s, p);
    for (int use = 1; use < tiles; ++use) {
      start_exchanged_values(o, p, group, use - 1);
      start_parts<0, 1, false>(s, group, use);
      wait_products<1>(o);
      if constexpr (kApart) {
        memory.v_ring().release(use - 1);
      } else {
        release_keys(use - 1);
      }
      start_parts<1, kParts, false>(s, group, use);
      wait_products<0>(s);
      if constexpr (kApart) release_keys(use);
      fold(rows, group, use, next, states, s);
      rows.move(o, states, next);
      publish(rows, group, states, next, s, p);
    }
    start_exchanged_values(o, p, group, tiles - 1);
    wait_products<0>(o);
  }

  // Adopts the new state and stores the weights for both warpgroups. Once both have reduced this
  // tile, the weights of the tile before are free.
  __device__ __forceinline__ void publish(const Rows& rows, int group, State (&states)[2],
                                          const State (&next)[2], const Values& s,
                                          Weights& p) const {
    adopt(states, next);
    pack_weights<T, Group::kKeys>(p, s);
    if constexpr (!Form::kExchanges) ptx_named_sync(kWideReduced, kWideThreads);
    store_weights<Group::kKeys>(memory.weights_tile(), p, rows.tile_row, group * Group::kKeys,
                                (threadIdx.x & 3) * 2);
    ptx_async_proxy_fence();
  }

  // Multiplies the warpgroup's own weights first, while those of the other arrive.
  __device__ __forceinline__ void start_exchanged_values(Sums& o, const Weights& p, int group,
                                                         int use) const {
    const int own = group * Group::kKeys, other = Config::kKeys - Group::kKeys - own;
    const unsigned v = values(group, use);
    ptx_product_fence();
    add_values<T, Group::kColumns, Group::kKeys>(o, p, v + own * kSlabRowBytes, Memory::kKeySlab);
    ptx_named_sync(kWideWeighed, kWideThreads);
    add_values<T, Group::kColumns, Group::kKeys>(o, memory.weights() + other * 2,
                                                 v + other * kSlabRowBytes, Memory::kKeySlab);
    ptx_product_commit();
  }

  // The weights are in registers, or at an address.
  template <typename P>
  __device__ __forceinline__ void start_all_values(Sums& o, const P& p, int group, int use) const {
    const unsigned v = values(group, use);
    ptx_product_fence();
    add_values<T, Group::kColumns, Config::kKeys>(o, p, v, Memory::kKeySlab);
    ptx_product_commit();
  }

  // One warpgroup, the scorer, computes all scores of a tile: products of 64 keys run at the full
  // rate of the tensor cores, and the reductions need no exchange.
  __device__ __forceinline__ void score(const Rows& rows, State (&states)[2], Sums& o) const {
    if (tiles <= 0) return;
    Values s;
    Weights p;
    State next[2];
    start_parts<0, kParts, true>(s, 0, 0);
    wait_products<0>(s);
    fold(rows, 0, 0, next, states, s);
    leave_weights(rows, next, s, p);
    adopt(states, next);
    for (int use = 1; use < tiles; ++use) {
      start_all_values(o, p, 0, use - 1);
      start_parts<0, 1, false>(s, 0, use);
      wait_products<1>(o);
      release_keys(use - 1);
      start_parts<1, kParts, false>(s, 0, use);
      wait_products<0>(s);
      fold(rows, 0, use, next, states, s);
      ptx_named_sync(kWideReduced, kWideThreads);
      leave_weights(rows, next, s, p);
      // While the other warpgroup starts its product.
      rows.move(o, states, next);
      adopt(states, next);
    }
    start_all_values(o, p, 0, tiles - 1);
    wait_products<0>(o);
  }

  __device__ __forceinline__ float* references(int tile_row) const {
    return memory.reduced() + kWideRows + tile_row;
  }

  __device__ __forceinline__ void leave_weights(const Rows& rows, const State (&next)[2],
                                                const Values& s, Weights& p) const {
    if (has_pair_0()) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Form::put_references(references(rows.tile_row) + h * 8, 2 * kWideRows, next[h]);
      }
    }
    pack_weights<T, Group::kKeys>(p, s);
    store_weights<Group::kKeys>(memory.weights_tile(), p, rows.tile_row, 0, (threadIdx.x & 3) * 2);
    ptx_async_proxy_fence();
    ptx_named_arrive(kWideWeighed, kWideThreads);
  }

  // The other warpgroup follows with the weights and references from shared memory.
  __device__ __forceinline__ void follow(const Rows& rows, State (&states)[2], Sums& o) const {
    for (int use = 0; use < tiles; ++use) {
      State next[2] = {states[0], states[1]};
      if constexpr (Form::kStarts) {
#pragma unroll
        for (int h = 0; h < 2; ++h) form.start(next[h], states[h], block, valid(use));
      }
      ptx_named_sync(kWideWeighed, kWideThreads);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Form::get_references(next[h], references(rows.tile_row) + h * 8, 2 * kWideRows);
      }
      if (use > 0) rows.move(o, states, next);
      adopt(states, next);
#pragma unroll
      for (int p = 0; p < kParts; ++p) memory.k_ring().wait_full(use * kParts + p);
      start_all_values(o, memory.weights(), 1, use);
      wait_products<0>(o);
      release_keys(use);
      if (use + 1 < tiles) ptx_named_arrive(kWideReduced, kWideThreads);
    }
  }

  // Passes the scorer's scalars to both warpgroups.
  __device__ __forceinline__ void share(int group, int tile_row, State (&states)[2]) const {
    float* const place = memory.reduced() + tile_row;
    if (group == 0 && has_pair_0()) {
#pragma unroll
      for (int h = 0; h < 2; ++h) Form::put_scalars(place + h * 8, 2 * kWideRows, states[h]);
    }
    ptx_named_sync(kWideReduced, kWideThreads);
#pragma unroll
    for (int h = 0; h < 2; ++h) Form::get_scalars(states[h], place + h * 8, 2 * kWideRows);
  }

  __device__ __forceinline__ void finish(const Rows& rows, int group, const WideSegments& segments,
                                         State (&states)[2], Sums& o) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) form.join_lanes(states[h]);
    if constexpr (kAlone) {
      share(group, rows.tile_row, states);
    } else {
      exchange(Rest{}, group, rows.tile_row, states);
    }
    const int group_column = group * Group::kColumns;
    if constexpr (Config::kCluster > 1) {
      // The state replaces the tiles, so all reads of tiles must be done.
      if constexpr (!kAlone && !Form::exchanges(Rest{})) {
        ptx_named_sync(kWideReduced, kWideThreads);
      }
      const Row own[2] = {row(rows, 0), row(rows, 1)};
      const int first =
          merge_cluster<Config::kCluster>(form, states, o, memory.memory, Memory::kHeadsAt,
                                          {place.rank, group, rows.tile_row}, own);
      rows.template write<Group::kColumns / 8 / Config::kCluster>(states, o, first);
      // The block's shared memory must stay until the others have read its state.
      ptx_cluster_wait();
    } else if (Config::kSegmented && segments.segments > 1) {
      float* const own = segments.states + ((place.other * segments.row_tiles + place.row_tile) *
                                                kWideRows * segments.segments +
                                            place.segment) *
                                               StateBlock<1, Form>::kFloats;
      store_rows<Form>(own, states, o, segments.segments, rows.tile_row, lines - place.first_row,
                       group_column, group == 0);
    } else {
      rows.template write<Group::kColumns / 8>(states, o, group_column);
    }
  }
  __device__ __forceinline__ Row row(const Rows& rows, int h) const {
    return form.row_of(place.other, min_of(rows.own_row + h * 8ll, lines - 1));
  }
};

template <typename Config, typename Form>
__device__ __forceinline__ void large_head_attention(const Form& form, const WideTensors& tensors,
                                                     const WideSegments& segments, long long lines,
                                                     long long keys) {
  extern __shared__ char shared[];
  const WideMemory<Config, Form> memory(shared);
  memory.init();
  const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const WidePlace place = WidePlace::of<Config::kCluster>(segments);
  const typename Form::Row row = form.row_of(place.other, place.first_row);
  const auto visited =
      form.visited(row, place.first_row, min_of(place.first_row + (kWideRows - 1ll), lines - 1));
  const int tiles = visited.count(), blocks = segments.segments * Config::kCluster;
  const int most = (tiles + blocks - 1) / blocks;
  const int before = (place.segment * Config::kCluster + place.rank) * most;
  const WideTiles<decltype(visited)> of = {visited, place.first_row, before,
                                           max(min(most, tiles - before), 0)};
  if (group == 0) {
    ptx_give_registers<24>();
    if (threadIdx.x == 0) produce_wide<Config>(form, tensors, memory, row, of);
  } else {
    ptx_take_registers<240>();
    const WideBlock<Config, Form, decltype(visited)> block = {form, memory, row, place,
                                                              of,   lines,  keys};
    block.consume(group - 1, segments);
  }
}
