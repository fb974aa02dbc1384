// Functors written by hand for the main loops of src/device/attention: those of attention_rows.cuh,
// over dense queries, keys and values of kDepth and kColumns elements.
#pragma once

#include "device/key_tiles.cuh"
#include "device/passes.cuh"

// The places of the operands, and the states of either fold.
template <typename Config, typename Merge>
struct DenseRows : Merge {
  static constexpr int kKept = 0;
  long long keys;

  using Row = OutputRows::Row;
  __device__ void set_line(Row& row, long long line) const { row = this->row_of(row.other, line); }
  __device__ long long query(const Row& row, long long e) const {
    return row.number * Config::kDepth + e;
  }
  __device__ long long key(const Row& row, long long at, long long e) const {
    return (row.other * keys + at) * Config::kDepth + e;
  }
  __device__ long long value(const Row& row, long long at, long long e) const {
    return (row.other * keys + at) * Config::kColumns + e;
  }
  // Keys up to the row's own line.
  __device__ TileRange visited(const Row&, long long, long long last) const {
    const long long end = min_of(last + 1, keys);
    return {0, static_cast<int>((end + Config::kKeys - 1) / Config::kKeys)};
  }
#if __CUDA_ARCH__ >= 900
  template <typename Map>
  __device__ void copy_key(unsigned to, const Map& map, unsigned barrier, int column, int from,
                           const Row& row) const {
    ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.other));
  }
  template <typename Map>
  __device__ void copy_value(unsigned to, const Map& map, unsigned barrier, int column, int from,
                             const Row& row) const {
    ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.other));
  }
#endif
};

// Causal softmax: the maximum, then the sum and the weights.
template <typename Config>
struct SoftmaxRows : DenseRows<Config, Softmax<(Config::kColumns + 15) / 16 * 16>> {
  using State = typename Softmax<(Config::kColumns + 15) / 16 * 16>::State;
  using Row = OutputRows::Row;
  static constexpr int kPhases = 2, kValuePhase = 1;
  static constexpr bool kStarts = false, kMoves = true;
  using Softmax<(Config::kColumns + 15) / 16 * 16>::settle;

  __device__ void lift(Phase<0>, State& part, float&, Kept<0>&, float s, const State&,
                       const Row& row, long long at, bool exists) const {
    if (exists && at <= row.line) part.most = max_of(part.most, s);
  }
  __device__ void settle(Phase<0>, State& to, const State& from, const State& part,
                         const Row&) const {
    to.most = max_of(from.most, quad_reduce<MaxOp>(part.most));
  }
  __device__ void lift(Phase<1>, State& part, float& weight, Kept<0>&, float s, const State& to,
                       const Row& row, long long at, bool exists) const {
    weight = exists && at <= row.line ? expf(s - to.most) : 0.0f;
    part.sum += weight;
  }
  __device__ void settle(Phase<1>, State& to, const State& from, const State& part,
                         const Row&) const {
    to.sum = from.sum * expf(from.most - to.most) + quad_reduce<SumOp>(part.sum);
  }
  __device__ static bool same(const State& a, const State& b) { return a.most == b.most; }
};

// Σ s · v over all keys: one pass, and a value state that nothing moves.
template <typename Config>
struct SumRows : DenseRows<Config, Deviation<(Config::kColumns + 15) / 16 * 16>> {
  using State = typename Deviation<(Config::kColumns + 15) / 16 * 16>::State;
  using Row = OutputRows::Row;
  static constexpr int kPhases = 1, kValuePhase = 0;
  static constexpr bool kStarts = true, kMoves = false;
  using Deviation<(Config::kColumns + 15) / 16 * 16>::settle;

  __device__ void start(State& to, const State& from, const Row&, int added) const {
    to.count = from.count + added;
    to.mean = 0;
  }
  __device__ void lift(Phase<0>, State& part, float& weight, Kept<0>&, float s, const State&,
                       const Row&, long long, bool exists) const {
    weight = exists ? s : 0.0f;
    if (!exists) return;
    part.sum += s;
    part.squares += s * s;
  }
  __device__ void settle(Phase<0>, State& to, const State& from, const State& part,
                         const Row&) const {
    to.sum = from.sum + quad_reduce<SumOp>(part.sum);
    to.squares = from.squares + quad_reduce<SumOp>(part.squares);
  }
};
