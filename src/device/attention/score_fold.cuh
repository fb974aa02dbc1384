// Folds tiles of scores into the states of a warpgroup's 64 rows, in registers, for the attention
// kernels of sm_90a: online softmax (Milakov and Gimelshein, 2018), and any other cascade of its
// structure. A thread has elements of two rows, h = 0 and 1, 8 rows apart (hopper.cuh).
//
// A Form (codegen/attention/hopper/hopper_functor.h) has the arithmetic of a row.
//   kPhases            passes over a tile's scores; the last one gives the weights
//   kEven              the keys are whole tiles
//   kAlwaysWhole       the same, and the mask shows all keys
//   kStarts, kMoves    start() and move() do something
//   kColumns           value columns, with padding to a multiple of 16
//   State, Row, Tail   as those of mma_fold.cuh; also row_of, set_line, identity, start, same,
//                      move, finish and write
//   Pair               bias of two adjacent elements
//   whole(row, first, first_row, last_row)
//                      whether these lines see all keys of the tile that begins at the key `first`
//   map(Scores<W>, s)  maps all scores of a tile at once
//   load_bias(Scores<W>, Phase<P>, pair, bias)
//                      the bias that the phase needs
//   lift(Scores<W>, Phase<P>, part, s, pair, to, row, at)
//                      adds a score to the tile's part. s becomes what later phases need instead of
//                      the score, and in the last phase the weight
//   reduce(Scores<W>, Phase<P>, part, other)
//                      one part of the two that a thread has of a row; of all its lanes where the
//                      passes or the states need it
//   settle(Phase<P>, to, from, part, row)
//                      the scalars and references of `to` that the phase determines
//   aligned_outputs()  whether write() stores columns together
//   join_lanes(s)      completes scalars of which each lane has a part until the end
// An Exchange joins the parts of a row that several warpgroups have: exchange(Phase<P>, parts), of
// both rows.
#pragma once

#include "device/attention.cuh"
#include "device/hopper.cuh"
#include "device/passes.cuh"
#include "device/reduce.cuh"

// Tiles in which every key exists and is visible, and all tiles.
template <bool Whole>
struct Scores {};

// A key of a thread: `first` is the thread's first one in the tile, and key = first + offset, or
// the last key beyond it.
struct KeyPlace {
  int key, first, offset;
  int side;  // of the two adjacent keys
  bool exists;
};

// Two adjacent elements of a tile, in the bias of the warpgroup.
struct BiasPlace {
  const char* bias;
  int buffer;  // 0 or 1 of the terms
  int row, column;
};

// Of a Form whose scores have no bias, and are not mapped at once.
struct PlainScores {
  struct Loaded {};
  struct Pair {};
  static constexpr bool kTerms = false, kByKey = false, kStrips = false;
  static constexpr int kTermBytes = 0, kStripBytes = 0;
  template <typename Row>
  __device__ __forceinline__ Loaded load_terms(const Row&, int, int, int) const {
    return {};
  }
  template <typename Which, int N>
  __device__ __forceinline__ void map(Which, float (&)[N][4]) const {}
  template <typename Which, typename P>
  __device__ __forceinline__ void load_bias(Which, P, Pair&, const BiasPlace&) const {}
};

// A tile of keys, as the lines [first_row, last_row] see it. A warpgroup has its keys from `own`
// on.
struct ScoreTile {
  int first, keys, own;
  int first_row, last_row;
  const char* bias;
  int buffer;
};

// Members of a state that warpgroups exchange, beside the scalars of a phase: the scalars of which
// each lane has a part until the end, all scalars, the references. Nothing combines references.
struct Rest {};
struct Scalars {};
struct References {};
struct Replace {};

struct NoExchange {
  template <typename P, typename State>
  __device__ __forceinline__ void operator()(P, State (&)[2]) const {}
};

template <typename Config, typename Form>
struct ScoreRows {
  static constexpr int kBlocks = Config::kKeys / 8, kColumnBlocks = Config::kColumns / 8;
  using State = typename Form::State;
  using Row = typename Form::Row;

  const Form& form;
  const Row& block;
  const int own_row, tile_row;  // of the thread: a line, and its place in the warpgroup's tile
  const long long lines, keys;

  __device__ __forceinline__ void clear_state(State (&states)[2],
                                              float (&o)[kColumnBlocks][4]) const {
    states[0] = states[1] = form.identity(block);
#pragma unroll
    for (int n = 0; n < kColumnBlocks; ++n) {
#pragma unroll
      for (int x = 0; x < 4; ++x) o[n][x] = 0;
    }
  }

  // Folds a tile: `next` are the new states, s the weights. `clear`: as far as the keys alone
  // decide, the lines of the tile see all of them.
  template <typename Exchange>
  __device__ __forceinline__ void fold(State (&next)[2], const State (&states)[2],
                                       float (&s)[kBlocks][4], const ScoreTile& tile, bool clear,
                                       const Exchange& exchange) const {
    if constexpr (Form::kAlwaysWhole) {
      fold_scores(Scores<true>{}, next, states, s, tile, exchange);
    } else if ((Form::kEven || tile.first + tile.keys <= keys) &&
               form.whole(block, tile.first, tile.first_row, tile.last_row) && clear) {
      fold_scores(Scores<true>{}, next, states, s, tile, exchange);
    } else {
      fold_scores(Scores<false>{}, next, states, s, tile, exchange);
    }
  }

  // Rescales the value states, unless the references of the warp's rows are the same: ρ(d, d) = 1.
  __device__ __forceinline__ void move(float (&o)[kColumnBlocks][4], const State (&from)[2],
                                       const State (&to)[2]) const {
    if constexpr (Form::kMoves) {
      const bool same = form.same(from[0], to[0]) && form.same(from[1], to[1]);
      if (__all_sync(0xffffffffu, same)) return;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float moved[kColumnBlocks * 2];
#pragma unroll
        for (int i = 0; i < kColumnBlocks * 2; ++i) moved[i] = o[i / 2][h * 2 + i % 2];
        form.move(moved, from[h], to[h], row(h));
#pragma unroll
        for (int i = 0; i < kColumnBlocks * 2; ++i) o[i / 2][h * 2 + i % 2] = moved[i];
      }
    }
  }

  // Writes outputs of the first N * 8 columns of o, which are those from `first` on. In a branch of
  // their own, stores to aligned outputs have no branches.
  template <int N>
  __device__ __forceinline__ void write(const State (&states)[2],
                                        const float (&o)[kColumnBlocks][4], int first) const {
    if (form.aligned_outputs()) {
      write_columns<N>(states, o, first);
    } else {
      write_columns<N>(states, o, first);
    }
  }

 private:
  template <int N>
  __device__ __forceinline__ void write_columns(const State (&states)[2],
                                                const float (&o)[kColumnBlocks][4],
                                                int first) const {
    const int pair = (threadIdx.x & 3) * 2;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const Row at = row(h);
      const bool exists = own_row + h * 8 < lines;
      const typename Form::Tail tail = form.finish(states[h], at);
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const float two[2] = {o[n][h * 2], o[n][h * 2 + 1]};
        form.write(two, states[h], at, tail, first + n * 8 + pair, exists);
      }
    }
  }

  __device__ __forceinline__ Row row(int h) const {
    Row result = block;
    form.set_line(result, min_of(own_row + h * 8ll, lines - 1));
    return result;
  }

  template <bool Whole, typename Exchange>
  __device__ __forceinline__ void fold_scores(Scores<Whole> which, State (&next)[2],
                                              const State (&states)[2], float (&s)[kBlocks][4],
                                              const ScoreTile& tile,
                                              const Exchange& exchange) const {
    form.map(which, s);
    if constexpr (Form::kStarts) {
      const int added = Whole || Form::kEven
                            ? tile.keys
                            : static_cast<int>(min_of(keys - tile.first, 1ll * tile.keys));
#pragma unroll
      for (int h = 0; h < 2; ++h) form.start(next[h], states[h], row(h), added);
    }
    run_phases<0>(which, next, states, s, tile, exchange);
  }

  // The passes over the tile from P on.
  template <int P, bool Whole, typename Exchange>
  __device__ __forceinline__ void run_phases(Scores<Whole> which, State (&next)[2],
                                             const State (&states)[2], float (&s)[kBlocks][4],
                                             const ScoreTile& tile,
                                             const Exchange& exchange) const {
    if constexpr (P < Form::kPhases) {
      State parts[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) parts[h] = lift<P>(which, s, next[h], h, tile);
      exchange(Phase<P>{}, parts);
#pragma unroll
      for (int h = 0; h < 2; ++h) form.settle(Phase<P>{}, next[h], states[h], parts[h], row(h));
      run_phases<P + 1>(which, next, states, s, tile, exchange);
    }
  }

  // The part of row h in the warpgroup's keys.
  template <int P, bool Whole>
  __device__ __forceinline__ State lift(Scores<Whole> which, float (&s)[kBlocks][4],
                                        const State& to, int h, const ScoreTile& tile) const {
    const int pair = (threadIdx.x & 3) * 2, first = tile.own + pair;
    const int valid = Whole || Form::kEven
                          ? Config::kKeys
                          : static_cast<int>(min_of(keys - first, 1ll * Config::kKeys));
    const Row at = row(h);
    State part[2] = {form.identity(at), form.identity(at)};
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      typename Form::Pair two;
      form.load_bias(which, Phase<P>{}, two,
                     {tile.bias, tile.buffer, tile_row + h * 8, n * 8 + pair});
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int offset = n * 8 + e;
        const int key = Whole || Form::kEven
                            ? first + offset
                            : static_cast<int>(min_of(1ll * first + offset, keys - 1));
        form.lift(which, Phase<P>{}, part[e], s[n][h * 2 + e], two, to, at,
                  {key, first, offset, e, offset < valid});
      }
    }
    form.reduce(which, Phase<P>{}, part[0], part[1]);
    return part[0];
  }
};
