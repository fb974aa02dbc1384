// Attention for many rows on sm_90a, warp-specialised as in FlashAttention-3 (Shah et al., 2024): a
// producer warpgroup loads tiles by TMA into rings in shared memory; one to three consumer
// warpgroups multiply them by wgmma and fold the scores into the states of their rows. Consumers
// take turns, so the arithmetic of one overlaps with the products of the others.
//
// A Config is that of hopper_tiles.cuh. A Form has that of score_fold.cuh and of hopper_tiles.cuh,
// and
//   Loaded, load_terms(row, first, group_row, thread)
//                     reads of the terms of a tile, issued before the products
//   store_terms(loaded, row, bias, buffer, thread)
//                     stores the terms; whether the thread's key is visible to all rows
//   copy_strips(bias, row, warp, first_line, first)
//                     starts the copies of strips for the warp's 16 lines
#pragma once

#include "device/attention/hopper_tiles.cuh"
#include "device/attention/score_fold.cuh"
#include "device/key_tiles.cuh"

// A consumer warpgroup, group 0 to kGroups - 1.
template <typename Config, typename Form>
struct HopperGroup {
  using T = typename Config::T;
  using Memory = HopperMemory<Config, Form>;
  using Rows = ScoreRows<Config, Form>;
  using State = typename Form::State;
  static constexpr int kGroups = Config::kGroups, kKeys = Config::kKeys;
  static constexpr int kBiasBarrier = 3;  // plus 1 plus the warpgroup; turns have 1 to 3

  const Form& form;
  const Memory& memory;
  const long long lines, keys;
  const int group;

  __device__ __forceinline__ void consume(const RowTiles& rows) const {
    // The last warpgroup passes the first turn to the first one.
    if (group == kGroups - 1) pass_turn<kGroups>(kGroups - 1);
    unsigned item = 0, use = 0;
    while (true) {
      memory.work_ring().wait_full(item);
      const int work = memory.works()[item % 2];
      __syncwarp();
      memory.work_ring().release(item);
      if (work >= rows.count()) break;
      fold_rows(rows.template place<Memory::kRows>(work), item, use);
      ++item;
    }
  }

 private:
  // A row tile.
  template <typename Visited>
  struct Tile {
    const Rows& rows;
    const Visited& visited;
    const int group_row, last_group_row, tiles;
    const unsigned item, q_own;
  };

  __device__ __forceinline__ int thread() const { return threadIdx.x & 127; }
  __device__ __forceinline__ int warp() const { return threadIdx.x >> 5 & 3; }
  __device__ __forceinline__ char* bias() const { return memory.bias(group); }

  __device__ __forceinline__ void fold_rows(const RowTiles::Place& at, unsigned item,
                                            unsigned& use) const {
    const typename Form::Row block = form.row_of(at.other, at.first_row);
    const auto visited =
        form.visited(block, at.first_row,
                     static_cast<int>(min_of(at.first_row + (Memory::kRows - 1ll), lines - 1)));
    const int group_row = at.first_row + group * 64;
    const int tile_row = warp() * 16 + ((threadIdx.x & 31) >> 2);
    const Rows rows = {form, block, group_row + tile_row, tile_row, lines, keys};
    const Tile<decltype(visited)> tile = {rows,
                                          visited,
                                          group_row,
                                          static_cast<int>(min_of(group_row + 63ll, lines - 1)),
                                          visited.count(),
                                          item,
                                          memory.query(item) + group * (64 * kSlabRowBytes)};
    State states[2];
    float o[Config::kColumns / 8][4];
    rows.clear_state(states, o);
    memory.q_ring().wait_full_together(item);
    if (tile.tiles > 0 && group_row < lines) {
      fold_tiles(tile, states, o, use);
    } else {
      skip_tiles(tile, use);
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) form.join_lanes(states[h]);
    rows.template write<Config::kColumns / 8>(states, o, 0);
  }

  // The values of a tile are multiplied during the scores of the next one.
  template <typename Tile>
  __device__ __forceinline__ void fold_tiles(const Tile& of, State (&states)[2],
                                             float (&o)[Config::kColumns / 8][4],
                                             unsigned& use) const {
    const auto k_ring = memory.k_ring(), v_ring = memory.v_ring();
    float s[kKeys / 8][4];
    unsigned p[kKeys / 16][4];
    State next[2];
    const auto start_next_scores = [&](unsigned at) {
      start_scores<T, Config::kDepth, kKeys>(s, of.q_own, Memory::kRows * kSlabRowBytes,
                                             memory.key(at));
    };
    const auto start_own_values = [&] {
      start_values<T, Config::kColumns, kKeys>(o, p, memory.value(use));
    };
    {
      const int first = of.visited(0) * kKeys;
      copy_strips(of, first);
      const auto loaded = form.load_terms(of.rows.block, first, of.group_row, thread());
      k_ring.wait_full(use);
      start_next_scores(use);
      const bool clear = store_terms(of, loaded, use);
      wait_products<0>(s);
      k_ring.release(use);
      wait_strips();
      of.rows.fold(next, states, s, scores(of, first, use), clear, NoExchange{});
      if (Form::kStrips && of.tiles > 1) copy_strips(of, of.visited(1) * kKeys);
      adopt(states, next);
      pack_weights<T, kKeys>(p, s);
    }
    for (int tile = 1; tile < of.tiles; ++tile, ++use) {
      const int first = of.visited(tile) * kKeys;
      const auto loaded = form.load_terms(of.rows.block, first, of.group_row, thread());
      k_ring.wait_full(use + 1);
      await_turn<kGroups>(group);
      start_next_scores(use + 1);
      v_ring.wait_full(use);
      start_own_values();
      pass_turn<kGroups>(group);
      const bool clear = store_terms(of, loaded, use + 1);
      wait_products<1>(s);
      k_ring.release(use + 1);
      wait_strips();
      of.rows.fold(next, states, s, scores(of, first, use + 1), clear, NoExchange{});
      if (Form::kStrips && tile + 1 < of.tiles) copy_strips(of, of.visited(tile + 1) * kKeys);
      wait_products<0>(o);
      v_ring.release(use);
      of.rows.move(o, states, next);
      adopt(states, next);
      pack_weights<T, kKeys>(p, s);
    }
    memory.q_ring().release(of.item);
    v_ring.wait_full(use);
    start_own_values();
    wait_products<0>(o);
    v_ring.release(use++);
  }

  // A warpgroup without rows takes its turns and releases the tiles unread. The barrier of
  // store_terms keeps the next row tile from overwriting the buffer of the last one.
  template <typename Tile>
  __device__ __forceinline__ void skip_tiles(const Tile& of, unsigned& use) const {
    memory.q_ring().release(of.item);
    if constexpr (Form::kTerms) ptx_named_sync(kBiasBarrier + 1 + group, 128);
    for (int tile = 0; tile < of.tiles; ++tile, ++use) {
      memory.k_ring().wait_full_together(use);
      memory.k_ring().release(use);
      if (tile > 0) {
        await_turn<kGroups>(group);
        pass_turn<kGroups>(group);
      }
      memory.v_ring().wait_full_together(use);
      memory.v_ring().release(use);
    }
  }

  template <typename Tile>
  __device__ __forceinline__ ScoreTile scores(const Tile& of, int first, unsigned use) const {
    return {
        first, kKeys, first, of.group_row, of.last_group_row, bias(), static_cast<int>(use & 1)};
  }

  static __device__ __forceinline__ void adopt(State (&states)[2], const State (&next)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) states[h] = next[h];
  }

  // Two buffers of terms are used in turn: past the barrier of a tile every warp has folded the
  // tile before, so the other buffer may be overwritten. Returns whether the keys alone hide none.
  template <typename Tile>
  __device__ __forceinline__ bool store_terms(const Tile& of, const typename Form::Loaded& loaded,
                                              unsigned use) const {
    if constexpr (Form::kTerms || Form::kByKey) {
      const bool visible = form.store_terms(loaded, of.rows.block, bias(), use & 1, thread());
      if constexpr (Form::kByKey) {
        return ptx_named_all(kBiasBarrier + 1 + group, 128, visible);
      } else {
        ptx_named_sync(kBiasBarrier + 1 + group, 128);
      }
    }
    return true;
  }

  // Each warp copies the strips of its own rows after it has folded the tile before.
  template <typename Tile>
  __device__ __forceinline__ void copy_strips(const Tile& of, int first) const {
    if constexpr (Form::kStrips) {
      __syncwarp();
      form.copy_strips(bias(), of.rows.block, warp(), of.group_row + warp() * 16, first);
      ptx_copy_commit();
    }
  }
  static __device__ __forceinline__ void wait_strips() {
    if constexpr (Form::kStrips) {
      ptx_copy_wait<0>();
      __syncwarp();
    }
  }
};

// A persistent kernel: a block for each multiprocessor takes row tile after row tile; the producer
// starts the next one while the consumers finish the last one.
template <typename Config, typename Form>
__device__ __forceinline__ void hopper_attention(const Form& form, const AttentionTensors& tensors,
                                                 const RowTiles& rows, long long lines,
                                                 long long keys) {
  extern __shared__ char shared[];
  const HopperMemory<Config, Form> memory(shared);
  const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  memory.init();
  constexpr bool kNarrow = Config::kGroups > 2;
  if (group == 0) {
    ptx_give_registers<kNarrow ? 32 : 40>();
    if (threadIdx.x == 0) produce<Config>(form, tensors, memory, rows, lines);
  } else {
    ptx_take_registers<kNarrow ? 160 : 232>();
    HopperGroup<Config, Form>{form, memory, lines, keys, group - 1}.consume(rows);
  }
}
