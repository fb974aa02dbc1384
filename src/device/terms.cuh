// Reductions within an element's expression, term by term: by a thread, or by the lanes of a warp.
#pragma once

#include "device/math.cuh"
#include "device/reduce.cuh"

// The terms `first`, first + Lanes, ... before `end`. Lanes: 1, or 32, whose results differ.
template <typename Op, int Lanes, typename T, typename Term>
__device__ __forceinline__ T fold_terms(T identity, long long first, long long end,
                                        const Term& term) {
  T result = identity;
  for (long long i = Lanes > 1 ? first + (threadIdx.x & (Lanes - 1)) : first; i < end; i += Lanes) {
    result = Op::template apply<T>(result, term(i));
  }
  return result;
}

// term(0) ⊕ ... ⊕ term(count - 1). Lanes: threads that share the terms and each have the result.
// Part: sums of floats with more terms than that are added in parts of as many, so that rounding
// errors grow with the length of a part plus the number of parts instead of their product; 0: at
// once.
template <typename Op, int Lanes, int Part, typename T, typename Term>
__device__ __forceinline__ T reduce_terms(T identity, long long count, const Term& term) {
  T result = identity;
  if constexpr (Part > 0) {
    for (long long first = 0; first < count; first += Part) {
      const long long end = min_of(first + Part, count);
      result = Op::template apply<T>(result, fold_terms<Op, Lanes>(identity, first, end, term));
    }
  } else {
    result = fold_terms<Op, Lanes>(identity, 0, count, term);
  }
  return Lanes > 1 ? warp_reduce<Op>(result) : result;
}

// The element of `rank`, from 0 on, among term(0), ..., term(count - 1), in the order of
// ranks_before; its index is -1 where there are fewer. One pass for each rank finds the next
// element.
template <bool Large, typename T, typename Term>
__device__ __forceinline__ Ranked<T> ranked_term(long long rank, long long count,
                                                 const Term& term) {
  Ranked<T> best{0, -1}, last{0, -1};
  for (long long round = 0; round <= rank && round < count; ++round) {
    last = best;
    best = Ranked<T>{0, -1};
    for (long long i = 0; i < count; ++i) {
      const Ranked<T> here{term(i), i};
      if (last.index >= 0 && !ranks_before<Large>(last, here)) continue;
      if (ranks_before<Large>(here, best)) best = here;
    }
  }
  return best;
}
