// The end of split-KV attention: the states of a block's warps are merged in shared memory, those
// of segments by the last block of a row tile.
//
// A Config has, beside that of MergedRow,
//   kWarps     of a block
//   kSegments  of a row's keys; 0: known at run time
// A Form is that of merge.cuh.
#pragma once

#include "device/attention/merge.cuh"
#include "device/ptx_split.cuh"

// Stores a warp's rows quad and quad + 8, of which it has `own` and o in the layout of mma.sync
// (attention.cuh), to its block of states.
template <typename Config, typename Form>
__device__ __forceinline__ void store_warp(float* states, const typename Form::State (&own)[2],
                                           const float (&o)[Form::kColumns / 8][4]) {
  using Block = StateBlock<Config::kRows, Form>;
  constexpr int kHalves = (Config::kRows + 7) / 8, kQuads = Config::kRows < 8 ? Config::kRows : 8;
  const int lane = threadIdx.x & 31, quad = lane >> 2, pair = (lane & 3) * 2;
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
    if (quad >= kQuads) continue;
    const int line = quad + h * 8;
    if (pair == 0) store_state(states + line * Block::kHead, own[h]);
    float* const values = states + Block::kValues + line * Form::kColumns + pair;
#pragma unroll
    for (int n = 0; n < Form::kColumns / 8; ++n) {
      *reinterpret_cast<float2*>(values + n * 8) = make_float2(o[n][h * 2], o[n][h * 2 + 1]);
    }
  }
}

template <typename Config, typename Form>
__device__ __forceinline__ void merge_warps(const Form& form, MergedRow<Config, Form>& merged,
                                            const float* states, const typename Form::Row& row) {
  using Merged = MergedRow<Config, Form>;
  constexpr int kFloats = Merged::Block::kFloats;
  HeldParts<typename Form::State, Config::kWarps> parts;
#pragma unroll
  for (int i = 0; i < Config::kWarps; ++i) {
    parts.states[i] = load_state<typename Form::State>(states + i * kFloats + Merged::head_place());
  }
  merged.state = merge_states(form, parts, row);
  merged.clear_values();
#pragma unroll
  for (int i = 0; i < Config::kWarps; ++i) {
#pragma unroll
    for (int g = 0; g < Merged::kGroups; ++g) {
      if (!Merged::has(g)) continue;
      float values[4];
      load_floats(values, states + i * kFloats + Merged::values_place(g));
      merged.add(form, values, g, parts.states[i], row);
    }
  }
}

// Segments that are merged at a time. All their heads are loaded before the first is used, and, as
// far as registers hold them, their values: the loads cost one memory latency.
template <typename Config, typename Form>
struct SegmentRound {
  static constexpr int kRegisters = 208;  // of the 255 that a thread has
  static constexpr int kMost = 16;
  static constexpr int kValues = MergedRow<Config, Form>::kGroups * 4;
  static constexpr int kPart = static_cast<int>(sizeof(typename Form::State)) / 4 + 1 + kValues;
  static constexpr int kFit = (kRegisters - kValues) / kPart;
  static constexpr int kHeld = kFit < 1 ? 1 : kFit < kMost ? kFit : kMost;
  static constexpr bool kAhead = kHeld * kPart + kValues <= kRegisters;
  static constexpr int kParts =
      Config::kSegments > 0 && Config::kSegments < kHeld ? Config::kSegments : kHeld;
  // Whether there may be another round, which begins with the state of the rounds before.
  static constexpr bool kGoesOn = Config::kSegments == 0 || Config::kSegments > kParts;
};

// Adds the blocks of states from `states` on, of which `left` exist.
template <typename Config, typename Form>
__device__ __forceinline__ void merge_round(const Form& form, MergedRow<Config, Form>& merged,
                                            const float* states, int left,
                                            const typename Form::Row& row) {
  using Merged = MergedRow<Config, Form>;
  using Round = SegmentRound<Config, Form>;
  constexpr int kFloats = Merged::Block::kFloats, kBefore = Round::kGoesOn ? 1 : 0;
  const auto load = [&](float(&values)[4], int i, int g) {
    if (Merged::has(g) && (!Round::kGoesOn || i < left)) {
      load_floats(values, states + i * kFloats + Merged::values_place(g));
    } else {
#pragma unroll
      for (int e = 0; e < 4; ++e) values[e] = 0;
    }
  };
  HeldParts<typename Form::State, Round::kParts + kBefore> parts;
  float ahead[Round::kAhead ? Round::kParts : 1][Merged::kGroups][4];
#pragma unroll
  for (int i = 0; i < Round::kParts; ++i) {
    parts.states[i + kBefore] =
        !Round::kGoesOn || i < left
            ? load_state<typename Form::State>(states + i * kFloats + Merged::head_place())
            : form.identity(row);
    if constexpr (Round::kAhead) {
#pragma unroll
      for (int g = 0; g < Merged::kGroups; ++g) load(ahead[i][g], i, g);
    }
  }
  if constexpr (Round::kGoesOn) parts.states[0] = merged.state;
  merged.state = merge_states(form, parts, row);
  if constexpr (Round::kGoesOn) {
#pragma unroll
    for (int g = 0; g < Merged::kGroups; ++g) {
      form.move(merged.values[g], parts.states[0], merged.state, row);
    }
  } else {
    merged.clear_values();
  }
#pragma unroll
  for (int i = 0; i < Round::kParts; ++i) {
#pragma unroll
    for (int g = 0; g < Merged::kGroups; ++g) {
      if constexpr (Round::kAhead) {
        merged.add(form, ahead[i][g], g, parts.states[i + kBefore], row);
      } else {
        float values[4];
        load(values, i, g);
        merged.add(form, values, g, parts.states[i + kBefore], row);
      }
    }
  }
}

template <typename Config, typename Form>
__device__ __forceinline__ void merge_segments(const Form& form, MergedRow<Config, Form>& merged,
                                               const float* states, int segments,
                                               const typename Form::Row& row) {
  using Round = SegmentRound<Config, Form>;
  if constexpr (Round::kGoesOn) {
    merged.state = form.identity(row);
    merged.clear_values();
#pragma unroll 1
    for (int done = 0; done < segments; done += Round::kParts) {
      merge_round(form, merged,
                  states + static_cast<long long>(done) * MergedRow<Config, Form>::Block::kFloats,
                  segments - done, row);
    }
  } else {
    merge_round(form, merged, states, Round::kParts, row);
  }
}

// What a block has computed: `segment` of the rows from first_row on.
struct SegmentPlace {
  long long other, first_row, rows;
  unsigned group, segments;
};

// Merges the warps' states in `shared`, where each warp has its block of states, and writes the
// outputs; of several segments, stores the state in `states`, and the last block of the group
// merges those of all and writes. `counter`: of all groups.
template <typename Config, typename Form>
__device__ __forceinline__ void finish_split(const Form& form, const typename Form::State (&own)[2],
                                             const float (&o)[Form::kColumns / 8][4], float* shared,
                                             float* states, unsigned* counter,
                                             const SegmentPlace& place) {
  using Merged = MergedRow<Config, Form>;
  constexpr int kFloats = Merged::Block::kFloats;
  __syncthreads();
  store_warp<Config, Form>(shared + (threadIdx.x >> 5) * kFloats, own, o);
  __syncthreads();
  const long long line = place.first_row + Merged::line();
  const typename Form::Row row = form.row_of(place.other, min(line, place.rows - 1));
  Merged merged;
  merge_warps(form, merged, shared, row);
  if (place.segments > 1) {
    merged.store(states + static_cast<long long>(blockIdx.x) * kFloats);
    __shared__ unsigned before;
    __syncthreads();
    if (threadIdx.x == 0) before = ptx_count(counter + place.group, place.segments - 1);
    __syncthreads();
    if (before != place.segments - 1) return;
    merge_segments(form, merged,
                   states + static_cast<long long>(place.group) * place.segments * kFloats,
                   static_cast<int>(place.segments), row);
  }
  merged.write(form, row, line < place.rows);
}
