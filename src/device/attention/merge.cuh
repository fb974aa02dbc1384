// Merges partial states of attention rows.
//
// A Form (codegen/attention/attention_functor.h) has the algebra of a row.
//   kColumns         value columns, with padding to a multiple of 16
//   kScalars         scalars of a state, in the order in which they are merged
//   State            scalars, rescale references, and the count of keys where it is needed
//   Row, Tail        coordinates; results that all columns share
//   row_of(other, row)
//   identity(row)    the empty state
//   add(Scalar<I>, to, part, row)
//                    adds a scalar of a part, at the references that the scalars before I determine
//   settle(Scalar<I>, to, row)
//                    references that this scalar determines
//   move(values, from, to, row)
//                    rescales elements of the value state from the references of one state to those
//                    of another
//   finish(s, row), write(values, s, row, tail, column, exists)
//                    the outputs of adjacent columns from `column` on
#pragma once

#include "device/attention/states.cuh"

template <int I>
struct Scalar {};

// The scalars from I on.
template <int I, typename Form, typename Parts>
__device__ __forceinline__ void merge_scalars(const Form& form, typename Form::State& merged,
                                              const Parts& parts, const typename Form::Row& row) {
  if constexpr (I < Form::kScalars) {
#pragma unroll Parts::kUnrolled
    for (int i = 0; i < parts.count(); ++i) form.add(Scalar<I>{}, merged, parts.state(i), row);
    form.settle(Scalar<I>{}, merged, row);
    merge_scalars<I + 1>(form, merged, parts, row);
  }
}

// The merged state of parts.state(i) for i from 0 to parts.count(). Parts::kUnrolled rounds of a
// loop over them overlap.
template <typename Form, typename Parts>
__device__ __forceinline__ typename Form::State merge_states(const Form& form, const Parts& parts,
                                                             const typename Form::Row& row) {
  typename Form::State merged = form.identity(row);
  merge_scalars<0>(form, merged, parts, row);
  return merged;
}

// Parts in registers.
template <typename State, int Count>
struct HeldParts {
  static constexpr int kUnrolled = Count;
  State states[Count];
  static __device__ __forceinline__ constexpr int count() { return Count; }
  __device__ __forceinline__ const State& state(int i) const { return states[i]; }
};

// Parts in memory, `stride` floats apart.
template <typename State, int Unrolled>
struct StoredParts {
  static constexpr int kUnrolled = Unrolled;
  const float* heads;
  int stride, parts;
  __device__ __forceinline__ int count() const { return parts; }
  __device__ __forceinline__ State state(int i) const {
    return load_state<State>(heads + i * stride);
  }
};

// The threads of a block have rows, and groups of four value columns of them. A Config has
//   kRows, kThreads  rows of a block of states, a power of two up to 16; threads of a block
template <typename Config, typename Form>
struct MergedRow {
  static constexpr int kLanes = Config::kThreads / Config::kRows;
  static constexpr int kGroups = (Form::kColumns / 4 + kLanes - 1) / kLanes;
  using Block = StateBlock<Config::kRows, Form>;

  typename Form::State state;
  float values[kGroups][4];

  static __device__ __forceinline__ int line() { return threadIdx.x / kLanes; }
  static __device__ __forceinline__ int slot() { return threadIdx.x % kLanes; }
  static __device__ __forceinline__ int column(int g) { return (g * kLanes + slot()) * 4; }
  // Whether the thread has its group g.
  static __device__ __forceinline__ bool has(int g) {
    return Form::kColumns % (kLanes * 4) == 0 || column(g) < Form::kColumns;
  }
  // Places of the thread's head and group in a block of states.
  static __device__ __forceinline__ int head_place() { return line() * Block::kHead; }
  static __device__ __forceinline__ int values_place(int g) {
    return Block::kValues + line() * Form::kColumns + column(g);
  }

  __device__ __forceinline__ void clear_values() {
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
#pragma unroll
      for (int e = 0; e < 4; ++e) values[g][e] = 0;
    }
  }

  // Adds group g of a part.
  __device__ __forceinline__ void add(const Form& form, float (&part_values)[4], int g,
                                      const typename Form::State& part,
                                      const typename Form::Row& row) {
    form.move(part_values, part, state, row);
#pragma unroll
    for (int e = 0; e < 4; ++e) values[g][e] += part_values[e];
  }

  // To the block of states `to`.
  __device__ __forceinline__ void store(float* to) const {
    if (slot() == 0) store_state(to + head_place(), state);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (has(g)) store_floats(to + values_place(g), values[g]);
    }
  }

  __device__ __forceinline__ void write(const Form& form, const typename Form::Row& row,
                                        bool exists) const {
    const typename Form::Tail tail = form.finish(state, row);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      if (has(g)) form.write(values[g], state, row, tail, column(g), exists);
    }
  }
};
