// A consumer warpgroup of attention for large heads on sm_90a: its products, its folds, and what it
// exchanges with the other one.
//
// A Config is that of large_head_tiles.cuh. A Form has that of score_fold.cuh and of
// large_head_tiles.cuh, and
//   each(W, s, visit)      calls visit(member, place, op) for the scalars of a Phase<P>, those of
//                          which lanes have parts until the end (Rest), all (Scalars), or for the
//                          References of a state; their places in memory differ, and op combines
//                          two scalars
//   exchanges(W)           whether there are such scalars of a Phase<P>, or of Rest
//   kExchanges             whether there are of any phase: its reduction needs the keys of both
//                          warpgroups
#pragma once

#include "device/attention/large_head_tiles.cuh"
#include "device/attention/score_fold.cuh"

// Visitors of members of a state: they store them `stride` floats apart, load them from there, and
// combine those of two states.
struct PutMember {
  float* to;
  int stride;
  template <typename Op>
  __device__ __forceinline__ void operator()(float member, int place, Op) const {
    to[place * stride] = member;
  }
};
struct GetMember {
  const float* from;
  int stride;
  template <typename Op>
  __device__ __forceinline__ void operator()(float& member, int place, Op) const {
    member = from[place * stride];
  }
};
struct JoinMember {
  const float *left, *right;
  int stride;
  template <typename Op>
  __device__ __forceinline__ void operator()(float& member, int place, Op) const {
    member = Op::apply(left[place * stride], right[place * stride]);
  }
};

template <typename Config, typename Form, typename Visited>
struct WideGroup {
  using T = typename Config::T;
  using Memory = WideMemory<Config, Form>;
  using State = typename Form::State;
  static constexpr int kParts = Memory::kParts;
  static constexpr bool kApart = Memory::kApart, kAlone = Config::kScorers == 1;
  static constexpr bool kExchanges = Form::kExchanges;
  // The keys whose scores the warpgroup computes, and its value columns.
  struct Own {
    static constexpr int kKeys = Config::kKeys / Config::kScorers;
    static constexpr int kColumns = Config::kGroupColumns;
  };
  using Rows = ScoreRows<Own, Form>;
  using Sums = float[Own::kColumns / 8][4];
  using Values = float[Own::kKeys / 8][4];
  using Weights = unsigned[Own::kKeys / 16][4];

  const Rows rows;
  const Memory& memory;
  const WideTiles<Visited>& of;
  const int group;

  __device__ __forceinline__ int tiles() const { return of.tiles; }
  __device__ __forceinline__ int first_key(int use) const {
    return of.template first_key<Config::kKeys>(use);
  }
  __device__ __forceinline__ int valid(int use) const {
    return static_cast<int>(min_of(rows.keys - first_key(use), 1ll * Config::kKeys));
  }
  // The warpgroup's first key in a tile.
  __device__ __forceinline__ int own_key() const { return kAlone ? 0 : group * Own::kKeys; }
  // Of the four lanes that share a row.
  static __device__ __forceinline__ bool is_first_lane() { return (threadIdx.x & 3) == 0; }

  // Reduces the scalars of W over both warpgroups.
  template <typename W>
  __device__ __forceinline__ void exchange(W, State (&parts)[2]) const {
    if constexpr (Form::exchanges(W{})) {
      float* const place = memory.reduced() + rows.tile_row;
      if (is_first_lane()) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          Form::each(W{}, parts[h], PutMember{place + group * kWideRows + h * 8, 2 * kWideRows});
        }
      }
      ptx_named_sync(kWideReduced, kWideThreads);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Form::each(W{}, parts[h],
                   JoinMember{place + h * 8, place + kWideRows + h * 8, 2 * kWideRows});
      }
    }
  }
  struct Exchange {
    const WideGroup& group;
    template <typename P>
    __device__ __forceinline__ void operator()(P, State (&parts)[2]) const {
      if constexpr (!kAlone) group.exchange(P{}, parts);
    }
  };

  __device__ __forceinline__ void fold(int use, State (&next)[2], const State (&states)[2],
                                       Values& s) const {
    const int first = first_key(use);
    const int last_row = static_cast<int>(min_of(of.first_row + (kWideRows - 1ll), rows.lines - 1));
    const ScoreTile tile = {
        first, Config::kKeys, first + own_key(), of.first_row, last_row, nullptr, 0};
    rows.fold(next, states, s, tile, true, Exchange{*this});
  }

  // Starts the scores of parts [Begin, End) of a tile, one after the other, as K (and for the first
  // tile Q) arrives.
  template <int Begin, int End, bool First>
  __device__ __forceinline__ void start_parts(Values& s, int use) const {
    if constexpr (Begin < End) {
      const unsigned k = opaque_address(memory.key(use) + own_key() * kSlabRowBytes);
      const unsigned q = opaque_address(memory.tiles());
      add_parts<Begin, End, First>(s, use, q, k);
      ptx_product_commit();
    }
  }
  __device__ __forceinline__ void release_keys(int use) const {
#pragma unroll
    for (int p = 0; p < kParts; ++p) memory.k_ring().release(use * kParts + p);
  }

  // Starts the products of a tile's values with weights of which each warpgroup has half: its own
  // first, while those of the other arrive.
  __device__ __forceinline__ void start_exchanged_values(Sums& o, const Weights& p, int use) const {
    const int own = own_key(), other = Config::kKeys - Own::kKeys - own;
    const unsigned v = values(use);
    ptx_product_fence();
    add_values<T, Own::kColumns, Own::kKeys>(o, p, v + own * kSlabRowBytes, Memory::kKeySlab);
    ptx_named_sync(kWideWeighed, kWideThreads);
    add_values<T, Own::kColumns, Own::kKeys>(o, memory.weights() + other * 2,
                                             v + other * kSlabRowBytes, Memory::kKeySlab);
    ptx_product_commit();
  }
  // The same with all weights in registers, or at an address.
  template <typename P>
  __device__ __forceinline__ void start_values(Sums& o, const P& p, int use) const {
    const unsigned v = values(use);
    ptx_product_fence();
    add_values<T, Own::kColumns, Config::kKeys>(o, p, v, Memory::kKeySlab);
    ptx_product_commit();
  }

 private:
  template <int P, int End, bool First>
  __device__ __forceinline__ void add_parts(Values& s, int use, unsigned q, unsigned k) const {
    if constexpr (P < End) {
      constexpr int kPartColumns = Memory::kPartColumns, kLeft = Config::kDepth - P * kPartColumns;
      if constexpr (First) memory.q_ring().wait_full(P);
      memory.k_ring().wait_full(use * kParts + P);
      ptx_product_fence();
      add_scores < T, kLeft<kPartColumns ? kLeft : kPartColumns, Own::kKeys>(
                          s, q + P * Config::kPartSlabs * Memory::kQuerySlab, Memory::kQuerySlab,
                          k + P * Config::kPartSlabs * Memory::kKeySlab, Memory::kKeySlab, P > 0);
      add_parts<P + 1, End, First>(s, use, q, k);
    }
  }

  // The address of the warpgroup's value columns.
  __device__ __forceinline__ unsigned values(int use) const {
    if constexpr (kApart) memory.v_ring().wait_full(use);
    return opaque_address(memory.value(use) +
                          group * (Own::kColumns / kSlabColumns) * Memory::kKeySlab);
  }
};
