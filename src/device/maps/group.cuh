// Groups of adjacent points of an axis: a thread loads their elements together, computes one after
// the other, and stores the results together.
#pragma once

#include "device/types.cuh"

// The values of a group's points.
template <typename Value, int Width>
struct Values {
  Value of[Width];

  __device__ __forceinline__ Value& operator[](int v) { return of[v]; }
  __device__ __forceinline__ const Value& operator[](int v) const { return of[v]; }
};

// Width points of an axis of `points`, from `first` on, of which the first `valid` exist.
template <int Width>
struct Group {
  long long first, valid, points;
  bool vector;  // every access is that of a vector, as in load_group

  // The elements of the points, which are adjacent; that of point 0 is at `offset`.
  template <typename T>
  __device__ __forceinline__ Values<ValueOf<T>, Width> load(const T* from, long long offset) const {
    Values<ValueOf<T>, Width> result;
    load_group<Width>(result.of, from, offset + first, valid, vector);
    return result;
  }
  template <typename T>
  __device__ __forceinline__ void store(T* to, long long offset,
                                        const Values<ValueOf<T>, Width>& from) const {
    store_group<Width>(to, offset + first, from.of, valid, vector);
  }
  // Values for store().
  template <typename T>
  __device__ __forceinline__ Values<ValueOf<T>, Width> values(const T*) const {
    return {};
  }

  // compute(v, point) for every v. In place of points behind the last one, that one is computed
  // again, since its reads are within bounds.
  template <typename Compute>
  __device__ __forceinline__ void each(const Compute& compute) const {
#pragma unroll
    for (int v = 0; v < Width; ++v) {
      compute(v, first + v < points ? first + v : points - 1);
    }
  }
};

// The group that begins at the point `first` of an axis of `points`.
template <int Width>
__device__ __forceinline__ Group<Width> group_from(long long first, long long points, bool vector) {
  return {first, points - first, points, vector};
}
