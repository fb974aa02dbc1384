// Attention on sm_90a for head sizes beyond the registers of one warpgroup (wide.cuh): a block has
// 64 rows and a segment of the keys, which a producer loads tile by tile; both consumer warpgroups
// keep the state of the rows, and each has half of the value columns.
//
// A Config is that of large_head_tiles.cuh. A Form has that of large_head_group.cuh and merge.cuh,
// and visited of hopper_tiles.cuh.
#pragma once

#include "device/attention/cluster_merge.cuh"
#include "device/attention/large_head_scores.cuh"
#include "device/attention/row_merge.cuh"
#include "device/key_tiles.cuh"

// Passes the scalars of the first warpgroup to both.
template <typename Form, typename Group>
__device__ __forceinline__ void share_scalars(const Group& of, typename Form::State (&states)[2]) {
  float* const place = of.memory.reduced() + of.rows.tile_row;
  if (of.group == 0 && of.is_first_lane()) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      Form::each(Scalars{}, states[h], PutMember{place + h * 8, 2 * kWideRows});
    }
  }
  ptx_named_sync(kWideReduced, kWideThreads);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    Form::each(Scalars{}, states[h], GetMember{place + h * 8, 2 * kWideRows});
  }
}

// Writes the outputs of a block's rows, or stores their states if the keys are in several segments.
template <typename Config, typename Form, typename Group>
__device__ __forceinline__ void finish_rows(const Form& form, const Group& of,
                                            const WidePlace& place, const WideSegments& segments,
                                            typename Form::State (&states)[2],
                                            typename Group::Sums& o) {
  constexpr int kBlocks = Config::kGroupColumns / 8;
#pragma unroll
  for (int h = 0; h < 2; ++h) form.join_lanes(states[h]);
  if constexpr (Group::kAlone) {
    share_scalars<Form>(of, states);
  } else {
    of.exchange(Rest{}, states);
  }
  const int column = of.group * Config::kGroupColumns;
  if constexpr (Config::kCluster > 1) {
    // The states replace the tiles, so all reads of tiles must be done.
    if constexpr (!Group::kAlone && !Form::exchanges(Rest{})) {
      ptx_named_sync(kWideReduced, kWideThreads);
    }
    const auto row = [&](int h) {
      return form.row_of(place.other, min_of(of.rows.own_row + h * 8ll, of.rows.lines - 1));
    };
    const typename Form::Row rows[2] = {row(0), row(1)};
    const int first =
        merge_cluster<Config::kCluster>(form, states, o, of.memory.memory, Group::Memory::kHeadsAt,
                                        {place.rank, of.group, of.rows.tile_row}, rows);
    of.rows.template write<kBlocks / Config::kCluster>(states, o, first);
    // The block's shared memory must stay until the others have read its state.
    ptx_cluster_wait();
  } else if (Config::kSegmented && segments.segments > 1) {
    const long long tile = place.other * segments.row_tiles + place.row_tile;
    float* const own = segments.states + (tile * kWideRows * segments.segments + place.segment) *
                                             StateBlock<1, Form>::kFloats;
    store_rows<Form>(own, states, o, segments.segments, of.rows.tile_row,
                     of.rows.lines - place.first_row, column, of.group == 0);
  } else {
    of.rows.template write<kBlocks>(states, o, column);
  }
}

template <typename Config, typename Form, typename Group>
__device__ __forceinline__ void consume_wide(const Form& form, const Group& of,
                                             const WidePlace& place, const WideSegments& segments) {
  typename Form::State states[2];
  typename Group::Sums o;
  of.rows.clear_state(states, o);
  if constexpr (Group::kAlone) {
    OneScores<Form, Group>{form, of}(states, o);
  } else {
    BothScore<Group>{of}(states, o);
  }
  finish_rows<Config>(form, of, place, segments, states, o);
}

template <typename Config, typename Form>
__device__ __forceinline__ void large_head_attention(const Form& form,
                                                     const AttentionTensors& tensors,
                                                     const WideSegments& segments, long long lines,
                                                     long long keys) {
  extern __shared__ char shared[];
  const WideMemory<Config, Form> memory(shared);
  memory.init();
  const int group = __shfl_sync(0xffffffffu, threadIdx.x >> 7, 0);
  const WidePlace place = WidePlace::of<Config::kCluster>(segments);
  const typename Form::Row row = form.row_of(place.other, place.first_row);
  const auto visited =
      form.visited(row, place.first_row, min_of(place.first_row + (kWideRows - 1ll), lines - 1));
  const int tiles = visited.count(), blocks = segments.segments * Config::kCluster;
  const int most = (tiles + blocks - 1) / blocks;
  const int before = (place.segment * Config::kCluster + place.rank) * most;
  const WideTiles<decltype(visited)> of = {visited, place.first_row, before,
                                           max(min(most, tiles - before), 0)};
  if (group == 0) {
    ptx_give_registers<24>();
    if (threadIdx.x == 0) produce_wide<Config>(form, tensors, memory, row, of);
  } else {
    ptx_take_registers<240>();
    using Group = WideGroup<Config, Form, decltype(visited)>;
    const int tile_row = (threadIdx.x >> 5 & 3) * 16 + ((threadIdx.x & 31) >> 2);
    const Group own = {
        {form, row, place.first_row + tile_row, tile_row, lines, keys}, memory, of, group - 1};
    consume_wide<Config>(form, own, place, segments);
  }
}
