// The loops of attention for large heads over a block's tiles (large_head_group.cuh): both
// warpgroups compute scores, or one of them does.
#pragma once

#include "device/attention/large_head_group.cuh"

template <typename State>
__device__ __forceinline__ void adopt_states(State (&states)[2], const State (&next)[2]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) states[h] = next[h];
}

// Both warpgroups compute scores. The tensor cores multiply the values of one tile, then start the
// scores of the next.
template <typename Group>
struct BothScore {
  using State = typename Group::State;
  using Config = typename Group::Own;

  const Group& group;

  __device__ __forceinline__ void operator()(State (&states)[2], typename Group::Sums& o) const {
    if (group.tiles() <= 0) return;
    typename Group::Values s;
    typename Group::Weights p;
    State next[2];
    group.template start_parts<0, Group::kParts, true>(s, 0);
    wait_products<0>(s);
    if constexpr (Group::kApart) group.release_keys(0);
    group.fold(0, next, states, s);
    publish(states, next, s, p);
    for (int use = 1; use < group.tiles(); ++use) {
      group.start_exchanged_values(o, p, use - 1);
      group.template start_parts<0, 1, false>(s, use);
      wait_products<1>(o);
      if constexpr (Group::kApart) {
        group.memory.v_ring().release(use - 1);
      } else {
        group.release_keys(use - 1);
      }
      group.template start_parts<1, Group::kParts, false>(s, use);
      wait_products<0>(s);
      if constexpr (Group::kApart) group.release_keys(use);
      group.fold(use, next, states, s);
      group.rows.move(o, states, next);
      publish(states, next, s, p);
    }
    group.start_exchanged_values(o, p, group.tiles() - 1);
    wait_products<0>(o);
  }

 private:
  // Adopts the new states and stores the weights for both warpgroups. Once both have reduced this
  // tile, the weights of the tile before are free.
  __device__ __forceinline__ void publish(State (&states)[2], const State (&next)[2],
                                          const typename Group::Values& s,
                                          typename Group::Weights& p) const {
    adopt_states(states, next);
    pack_weights<typename Group::T, Config::kKeys>(p, s);
    if constexpr (!Group::kExchanges) ptx_named_sync(kWideReduced, kWideThreads);
    store_weights<Config::kKeys>(group.memory.weights_tile(), p, group.rows.tile_row,
                                 group.own_key(), (threadIdx.x & 3) * 2);
    ptx_async_proxy_fence();
  }
};

// The first warpgroup, the scorer, computes all scores of a tile: products of 64 keys run at the
// full rate of the tensor cores, and the reductions need no exchange. The other one follows with
// the weights and references from shared memory.
template <typename Form, typename Group>
struct OneScores {
  using State = typename Group::State;

  const Form& form;
  const Group& group;

  __device__ __forceinline__ void operator()(State (&states)[2], typename Group::Sums& o) const {
    if (group.group == 0) {
      score(states, o);
    } else {
      follow(states, o);
    }
  }

 private:
  __device__ __forceinline__ float* references() const {
    return group.memory.reduced() + kWideRows + group.rows.tile_row;
  }

  __device__ __forceinline__ void score(State (&states)[2], typename Group::Sums& o) const {
    if (group.tiles() <= 0) return;
    typename Group::Values s;
    typename Group::Weights p;
    State next[2];
    group.template start_parts<0, Group::kParts, true>(s, 0);
    wait_products<0>(s);
    group.fold(0, next, states, s);
    leave_weights(next, s, p);
    adopt_states(states, next);
    for (int use = 1; use < group.tiles(); ++use) {
      group.start_values(o, p, use - 1);
      group.template start_parts<0, 1, false>(s, use);
      wait_products<1>(o);
      group.release_keys(use - 1);
      group.template start_parts<1, Group::kParts, false>(s, use);
      wait_products<0>(s);
      group.fold(use, next, states, s);
      ptx_named_sync(kWideReduced, kWideThreads);
      leave_weights(next, s, p);
      // While the other warpgroup starts its product.
      group.rows.move(o, states, next);
      adopt_states(states, next);
    }
    group.start_values(o, p, group.tiles() - 1);
    wait_products<0>(o);
  }

  __device__ __forceinline__ void leave_weights(const State (&next)[2],
                                                const typename Group::Values& s,
                                                typename Group::Weights& p) const {
    if (group.is_first_lane()) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Form::each(References{}, next[h], PutMember{references() + h * 8, 2 * kWideRows});
      }
    }
    pack_weights<typename Group::T, Group::Own::kKeys>(p, s);
    store_weights<Group::Own::kKeys>(group.memory.weights_tile(), p, group.rows.tile_row, 0,
                                     (threadIdx.x & 3) * 2);
    ptx_async_proxy_fence();
    ptx_named_arrive(kWideWeighed, kWideThreads);
  }

  __device__ __forceinline__ void follow(State (&states)[2], typename Group::Sums& o) const {
    for (int use = 0; use < group.tiles(); ++use) {
      State next[2] = {states[0], states[1]};
      if constexpr (Form::kStarts) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          form.start(next[h], states[h], group.rows.block, group.valid(use));
        }
      }
      ptx_named_sync(kWideWeighed, kWideThreads);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        Form::each(References{}, next[h], GetMember{references() + h * 8, 2 * kWideRows});
      }
      if (use > 0) group.rows.move(o, states, next);
      adopt_states(states, next);
#pragma unroll
      for (int p = 0; p < Group::kParts; ++p) {
        group.memory.k_ring().wait_full(use * Group::kParts + p);
      }
      group.start_values(o, group.memory.weights(), use);
      wait_products<0>(o);
      group.release_keys(use);
      if (use + 1 < group.tiles()) ptx_named_arrive(kWideReduced, kWideThreads);
    }
  }
};
