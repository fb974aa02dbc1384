// Functors written by hand for the main loops of src/device/attention that wgmma multiplies:
// softmax over all keys up to the row's own line, in dense operands of Config::kDepth elements.
#pragma once

#include "device/attention/score_fold.cuh"
#include "device/key_tiles.cuh"

template <typename Config>
struct WarpgroupSoftmax : Softmax<Config::kColumns>, PlainScores {
  using Base = Softmax<Config::kColumns>;
  using State = typename Base::State;
  using Row = OutputRows::Row;
  using Base::settle;
  static constexpr int kPhases = 2, kScalarPlaces = 3;
  static constexpr bool kEven = false, kAlwaysWhole = false, kStarts = false, kMoves = true;
  static constexpr bool kExchanges = true;

  __device__ void set_line(Row& row, long long line) const { row = this->row_of(row.other, line); }
  __device__ TileRange visited(const Row&, long long, long long last) const {
    return {0, static_cast<int>((last + Config::kKeys) / Config::kKeys)};
  }
  template <typename Map>
  __device__ void copy(unsigned to, const Map& map, unsigned barrier, int column, int from,
                       const Row& row) const {
    ptx_copy_box(to, map, barrier, column, from, static_cast<int>(row.other));
  }
  template <typename... Arguments>
  __device__ void copy_query(const Arguments&... arguments) const {
    copy(arguments...);
  }
  template <typename... Arguments>
  __device__ void copy_key(const Arguments&... arguments) const {
    copy(arguments...);
  }
  template <typename... Arguments>
  __device__ void copy_value(const Arguments&... arguments) const {
    copy(arguments...);
  }
  __device__ bool whole(const Row&, int first, int first_row, int) const {
    return first + Config::kKeys - 1 <= first_row;
  }
  template <bool Whole>
  __device__ void lift(Scores<Whole>, Phase<0>, State& part, float& s, const Pair&, const State&,
                       const Row& row, const KeyPlace& at) const {
    if (!Whole && (!at.exists || at.key > row.line)) s = -INFINITY_F;
    part.most = max_of(part.most, s);
  }
  template <bool Whole>
  __device__ void lift(Scores<Whole>, Phase<1>, State& part, float& s, const Pair&, const State& to,
                       const Row&, const KeyPlace&) const {
    s = ptx_exp2(s - to.most);
    part.sum += s;
  }
  template <typename Which>
  __device__ void reduce(Which, Phase<0>, State& part, const State& other) const {
    part.most = quad_reduce<MaxOp>(max_of(part.most, other.most));
  }
  template <typename Which>
  __device__ void reduce(Which, Phase<1>, State& part, const State& other) const {
    part.sum += other.sum;
  }
  __device__ void settle(Phase<0>, State& to, const State& from, const State& part,
                         const Row&) const {
    to.most = max_of(from.most, part.most);
  }
  __device__ void settle(Phase<1>, State& to, const State& from, const State& part,
                         const Row&) const {
    to.sum = from.sum * ptx_exp2(from.most - to.most) + part.sum;
  }
  __device__ bool aligned_outputs() const { return true; }
  static __device__ void join_lanes(State& s) { s.sum = quad_reduce<SumOp>(s.sum); }
  static __device__ bool same(const State& a, const State& b) { return a.most == b.most; }

  template <typename W>
  static __device__ constexpr bool exchanges(W) {
    return true;
  }
  static __device__ constexpr bool exchanges(Phase<1>) { return false; }
  template <typename S, typename V>
  static __device__ void each(Phase<0>, S& s, const V& visit) {
    visit(s.most, 0, MaxOp{});
  }
  template <typename S, typename V>
  static __device__ void each(Rest, S& s, const V& visit) {
    visit(s.sum, 1, SumOp{});
  }
  template <typename S, typename V>
  static __device__ void each(Scalars, S& s, const V& visit) {
    each(Phase<0>{}, s, visit);
    each(Rest{}, s, visit);
  }
  template <typename S, typename V>
  static __device__ void each(References, S& s, const V& visit) {
    visit(s.most, 0, Replace{});
  }
};
