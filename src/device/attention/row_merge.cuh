// States of the segments of large heads in memory, one after another for each row, and their merge
// by a block for each row.
//
// A Config has that of MergedRow, with one row, and
//   kTileRows  rows of a tile: states of a tile's rows are allocated whether a row exists or not
//   kMost      segments at most
// A Form is that of merge.cuh.
#pragma once

#include "device/attention/merge.cuh"

// Stores a warpgroup's rows, of which a thread has `row` and row + 8 and the values o of N * 8
// columns from `column` on, to the states of a segment at `states`. One of the two groups has the
// heads.
template <typename Form, int N>
__device__ __forceinline__ void store_rows(float* states, const typename Form::State (&own)[2],
                                           const float (&o)[N][4], int segments, int row,
                                           long long rows, int column, bool has_heads) {
  using Block = StateBlock<1, Form>;
  const int pair = (threadIdx.x & 3) * 2;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (row + h * 8 >= rows) break;
    float* const state = states + static_cast<long long>(row + h * 8) * segments * Block::kFloats;
    if (has_heads && pair == 0) store_state(state, own[h]);
    float* const values = state + Block::kValues + column + pair;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      if (Form::kColumns % (N * 16) != 0 && column + n * 8 >= Form::kColumns) break;
      *reinterpret_cast<float2*>(values + n * 8) = make_float2(o[n][h * 2], o[n][h * 2 + 1]);
    }
  }
}

// Merges the segments of row blockIdx.x and writes its outputs.
template <typename Config, typename Form>
__device__ __forceinline__ void merge_row(const Form& form, const float* states, int segments,
                                          int row_tiles, long long rows) {
  using Merged = MergedRow<Config, Form>;
  using Block = typename Merged::Block;
  const long long other = blockIdx.x / rows, line = blockIdx.x - other * rows;
  const long long tile = line / Config::kTileRows;
  states += ((other * row_tiles + tile) * Config::kTileRows + line - tile * Config::kTileRows) *
            segments * Block::kFloats;
  __shared__ __align__(16) float heads[Config::kMost * Block::kHead];
  for (int i = threadIdx.x; i < segments * Block::kHead; i += Config::kThreads) {
    const int part = i / Block::kHead, place = i - part * Block::kHead;
    heads[i] = states[part * Block::kFloats + place];
  }
  __syncthreads();
  const typename Form::Row row = form.row_of(other, line);
  const StoredParts<typename Form::State, 4> parts{heads, Block::kHead, segments};
  Merged merged;
  merged.state = merge_states(form, parts, row);
  merged.clear_values();
#pragma unroll 8
  for (int i = 0; i < segments; ++i) {
    const typename Form::State part = parts.state(i);
#pragma unroll
    for (int g = 0; g < Merged::kGroups; ++g) {
      if (!Merged::has(g)) continue;
      float values[4];
      load_floats(values,
                  states + static_cast<long long>(i) * Block::kFloats + Merged::values_place(g));
      merged.add(form, values, g, part, row);
    }
  }
  merged.write(form, row, true);
}
