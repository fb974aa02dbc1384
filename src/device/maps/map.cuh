// Elementwise kernels along their results. A thread computes an item of a map at a time: a group of
// adjacent points of the axis that is innermost in the results' memory, or a single point. Where
// points reduce many elements, the threads of a warp compute an item together.
#pragma once

#include "device/maps/group.cuh"
#include "device/math.cuh"

// Width: adjacent points of a group. Lanes: threads that compute an item together, 1 or 32.
// Threads: of a block. Small: there are less than 2^31 items, and a line has less points. Batch:
// items whose loads a thread may have under way at once.
template <int Width_, int Lanes_, int Threads_, bool Small_ = false, int Batch_ = 1>
struct MapConfig {
  static constexpr int Width = Width_, Lanes = Lanes_, Threads = Threads_, Batch = Batch_;
  static constexpr bool Small = Small_;
  static_assert(Lanes == 1 || Lanes == 32, "a thread or a warp computes an item");
};

// The items of a thread: `first`, and every `step`-th after it.
struct MapItems {
  long long first, step;
};

// The blocks that share a map, of which this is `number` of `count`.
struct MapBlocks {
  long long number, count;

  template <class Config>
  __device__ __forceinline__ MapItems items() const {
    constexpr long long kShare = Config::Threads / Config::Lanes;
    return {number * kShare + threadIdx.x / Config::Lanes, count * kShare};
  }
};
__device__ __forceinline__ MapBlocks all_blocks() { return {blockIdx.x, gridDim.x}; }

// A block that computes a map alone, from the thread `first` on.
struct MapBlock {
  unsigned first;

  template <class Config>
  __device__ __forceinline__ MapItems items() const {
    const unsigned thread = threadIdx.x + Config::Threads - first;
    return {first == 0 ? threadIdx.x : thread % Config::Threads, Config::Threads};
  }
};

// Lines of `points` points in groups: `groups` in a line, the last of which may be part of one, and
// `items` in all lines.
struct MapLines {
  long long items, groups, points;
};

// compute(line, group) for every group of Width points; `vector`: as in Group. `Share`: MapBlocks
// or MapBlock.
template <class Config, class Share, class Compute>
__device__ __forceinline__ void map_groups(const Share& share, const MapLines& lines, bool vector,
                                           const Compute& compute) {
  const MapItems own = share.template items<Config>();
  // No point of a whole group is behind the last one, which the compiler sees by a far end.
  const long long end = lines.points % Config::Width == 0 ? 1ll << 62 : lines.points;
  const auto compute_item = [&](long long item) {
    const long long line =
        Config::Small ? small_quotient(item, lines.groups) : floor_div(item, lines.groups);
    const long long group =
        Config::Small ? small_remainder(item, lines.groups) : item - line * lines.groups;
    const long long first = group * Config::Width;
    compute(line, Group<Config::Width>{first, lines.points - first, end, vector});
  };
  long long item = own.first;
  if constexpr (Config::Batch > 1) {
    constexpr int kBatch = Config::Batch;
    for (; item + (kBatch - 1) * own.step < lines.items; item += kBatch * own.step) {
#pragma unroll
      for (int i = 0; i < kBatch; ++i) compute_item(item + i * own.step);
    }
  }
  for (; item < lines.items; item += own.step) compute_item(item);
}

// compute(point) for each of `count` points.
template <class Config, class Share, class Compute>
__device__ __forceinline__ void map_points(const Share& share, long long count,
                                           const Compute& compute) {
  const MapItems own = share.template items<Config>();
  for (long long point = own.first; point < count; point += own.step) compute(point);
}

// Makes `count` numbers 0, one in each thread; blocks have so many threads.
template <int Threads, typename T>
__device__ __forceinline__ void clear_numbers(T* numbers, long long count) {
  const long long at = blockIdx.x * 1ll * Threads + threadIdx.x;
  if (at < count) numbers[at] = 0;
}

// A kernel of several maps: map(MapBlocks) of the part that has this block. Arguments are a map and
// the block after its last one, in turn; the last map has the other blocks. `first`: of the first
// map's blocks.
template <class Map>
__device__ __forceinline__ void map_parts(long long first, const Map& map) {
  map(MapBlocks{blockIdx.x - first, gridDim.x - first});
}
template <class Map, class... Rest>
__device__ __forceinline__ void map_parts(long long first, const Map& map, long long end,
                                          const Rest&... rest) {
  if (blockIdx.x < end) {
    map(MapBlocks{blockIdx.x - first, end - first});
  } else {
    map_parts(end, rest...);
  }
}
