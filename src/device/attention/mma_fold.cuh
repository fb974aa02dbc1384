// Folds tiles of scores into the states of a warp's 16 rows, in registers, for the portable
// attention kernels: online softmax (Milakov and Gimelshein, 2018), and any other cascade of its
// structure. Fragments have mma.sync's layout (attention.cuh): a thread has elements of two rows.
//
// A Config has that of mma_tiles.cuh, and
//   kHalves  1 or 2 of the thread's two rows exist
// A Form (codegen/attention/mma/mma_functor.h) has the arithmetic of a row.
//   kPhases, kValuePhase  passes over a tile's scores, and the one that gives the weights
//   kKept                 values of an element that passes after the first need
//   kStarts, kMoves       start() and move() do something
//   kColumns              value columns, with padding to a multiple of 16
//   State                 scalars and rescale references, and the count of keys where it is needed
//   Row, Tail             coordinates, and what elements share; results that columns share
//   row_of(other, line), set_line(row, line)
//   query(row, e)         the offset of an element of a query
//   identity(row)         the empty state
//   start(to, from, row, added)
//                         of a state with so many more keys: what no score determines
//   lift(Phase<P>, part, weight, kept, s, to, row, at, exists)
//                         adds the score of key `at` to the tile's part, or gives its weight
//   settle(Phase<P>, to, from, part, row)
//                         the scalars and references of `to` that the phase determines
//   same(a, b), move(values, from, to, row)
//                         whether references are equal; rescales elements of the value state
//   finish(s, row), write(values, s, row, tail, column, exists)
//                         the outputs of adjacent columns from `column` on
#pragma once

#include "device/attention/mma_tiles.cuh"
#include "device/passes.cuh"

template <int N>
struct Kept {
  float value[N];
};
template <>
struct Kept<0> {};

// Offsets of the queries of the lines from `first` on, as a function of (line, element).
template <typename Form>
struct QueryOffsets {
  const Form& form;
  const typename Form::Row& block;
  long long first;

  __device__ __forceinline__ long long operator()(long long line, long long e) const {
    typename Form::Row row = block;
    form.set_line(row, first + line);
    return form.query(row, e);
  }
};
template <typename Form>
__device__ __forceinline__ QueryOffsets<Form> query_offsets(const Form& form,
                                                            const typename Form::Row& block,
                                                            long long first) {
  return {form, block, first};
}

// The rows of a thread: the lines own and own + 8 of `lines`, over `keys` keys. `block` has the
// coordinates of all rows of the block. States and sums are arrays of their own, so that the
// compiler knows the numbers here before it unrolls loops.
template <typename Config, typename Form>
struct MmaRows {
  static constexpr int kBlocks = Config::kKeys / 8, kColumnBlocks = Form::kColumns / 8;
  using State = typename Form::State;
  using Row = typename Form::Row;

  const Form& form;
  const Row& block;
  const long long own, lines, keys;

  __device__ __forceinline__ void clear_state(State (&states)[2],
                                              float (&o)[kColumnBlocks][4]) const {
    states[0] = states[1] = form.identity(block);
#pragma unroll
    for (int n = 0; n < kColumnBlocks; ++n) clear(o[n]);
  }

  // Folds the keys from `first` on that exist, at most kKeys. tile.scores(s) computes their scores,
  // tile.values(o, p) adds their weighted values.
  template <typename Tile>
  __device__ __forceinline__ void fold(State (&states)[2], float (&o)[kColumnBlocks][4],
                                       long long first, const Tile& tile) const {
    const int valid = static_cast<int>(min_of(keys - first, 1ll * Config::kKeys));
    float s[kBlocks][4], p[kBlocks][4];
    Kept<Form::kKept> kept[kBlocks][4];
    State next[2];
    if constexpr (Config::kHalves < 2) {
#pragma unroll
      for (int n = 0; n < kBlocks; ++n) clear(p[n]);
    }
    tile.scores(s);
    if constexpr (Form::kStarts) {
#pragma unroll
      for (int h = 0; h < Config::kHalves; ++h) form.start(next[h], states[h], row(h), valid);
    }
    run_phases<0>(next, states, o, s, p, kept, first, valid);
    tile.values(o, p);
#pragma unroll
    for (int h = 0; h < Config::kHalves; ++h) states[h] = next[h];
  }

  __device__ __forceinline__ void write(const State (&states)[2],
                                        const float (&o)[kColumnBlocks][4]) const {
    const int pair = (threadIdx.x & 3) * 2;
#pragma unroll
    for (int h = 0; h < Config::kHalves; ++h) {
      if (own + h * 8 >= lines) break;
      const Row at = row(h);
      const typename Form::Tail tail = form.finish(states[h], at);
#pragma unroll
      for (int n = 0; n < kColumnBlocks; ++n) {
        const float two[2] = {o[n][h * 2], o[n][h * 2 + 1]};
        form.write(two, states[h], at, tail, n * 8 + pair, true);
      }
    }
  }

 private:
  __device__ __forceinline__ Row row(int h) const {
    Row result = block;
    form.set_line(result, min_of(own + h * 8, lines - 1));
    return result;
  }

  // The passes over the tile from P on.
  template <int P>
  __device__ __forceinline__ void run_phases(State (&next)[2], const State (&states)[2],
                                             float (&o)[kColumnBlocks][4],
                                             const float (&s)[kBlocks][4], float (&p)[kBlocks][4],
                                             Kept<Form::kKept> (&kept)[kBlocks][4], long long first,
                                             int valid) const {
    if constexpr (P < Form::kPhases) {
      const int pair = (threadIdx.x & 3) * 2, own_valid = valid - pair;
      const long long own_first = first + pair;
#pragma unroll
      for (int h = 0; h < Config::kHalves; ++h) {
        const Row at = row(h);
        State part = form.identity(at);
#pragma unroll
        for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int x = h * 2 + e, offset = n * 8 + e;
            form.lift(Phase<P>{}, part, p[n][x], kept[n][x], s[n][x], next[h], at,
                      min_of(own_first + offset, keys - 1), offset < own_valid);
          }
        }
        form.settle(Phase<P>{}, next[h], states[h], part, at);
        if constexpr (P == Form::kValuePhase && Form::kMoves) move(o, states[h], next[h], at, h);
      }
      run_phases<P + 1>(next, states, o, s, p, kept, first, valid);
    }
  }

  // Rescales the value state of row h, unless the references of the warp's rows are the same:
  // ρ(d, d) = 1. Not with products by fused multiply-adds: the branch makes the kernel spill.
  __device__ __forceinline__ void move(float (&o)[kColumnBlocks][4], const State& from,
                                       const State& to, const Row& at, int h) const {
    if constexpr (Config::kValues != Products::Scalar) {
      if (__all_sync(0xffffffffu, form.same(from, to))) return;
    }
    float moved[kColumnBlocks * 2];
#pragma unroll
    for (int i = 0; i < kColumnBlocks * 2; ++i) moved[i] = o[i / 2][h * 2 + i % 2];
    form.move(moved, from, to, at);
#pragma unroll
    for (int i = 0; i < kColumnBlocks * 2; ++i) o[i / 2][h * 2 + i % 2] = moved[i];
  }
};
