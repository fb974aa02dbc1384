// Two chained products in one launch on sm_90a: E = finish(C · D) with C = map(A · B₁, A · B₂, …),
// each of whose elements is rounded to 16 bits and never leaves its block.
//
// A cluster has a slab of rows. Its blocks divide the columns of C, which are the contracted axis
// of the second product: a block makes its columns of C in full, multiplies them by its rows of D,
// and the blocks add their sums of E through distributed shared memory in a fixed order, a share of
// the slab each. Where several clusters divide the columns of a slab, the last one of them to come
// adds the sums of all in their order, from global memory. The weights are wgmma's 64 rows and the
// slab's rows its columns, of which there may be 8. One warp loads all operands through one ring:
// D follows B without a wait. Geometry after FlashFuser (Huang et al., HPCA '26), with an ordered
// addition between clusters.
//
// A launch that starts early fills the ring with given weights while the kernels before it still
// run (programmatic dependent launch).
#pragma once

#include "device/maps/group.cuh"
#include "device/math.cuh"
#include "device/product/chain_tile.cuh"
#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"
#include "device/ptx_hopper.cuh"

// Copies chunks of weights from (k, n) on, of which the next is `by_k` or `by_n` elements away.
template <bool ByRows, int Chunks>
__device__ __forceinline__ void copy_chunks(unsigned to, const TensorMap& w, unsigned full, int k,
                                            int n, int by_k, int by_n) {
#pragma unroll
  for (int chunk = 0; chunk < Chunks; ++chunk) {
    ptx_copy_box(to + chunk * kChunkBytes, w, full, ByRows ? k : n, ByRows ? n : k, 0);
    k += by_k;
    n += by_n;
  }
}

template <typename Tile, typename... Maps>
__device__ __forceinline__ void load_weights(unsigned to, unsigned full, int stage, int column,
                                             const TensorMap& second, const Maps&... first) {
  to += Tile::kRowBytes;
  if (stage < Tile::kSteps) {
    ((copy_chunks<Tile::kFirstByRows, Tile::kChunks>(to, first, full, stage * kChunk, column, 0,
                                                     kChunk),
      to += Tile::kColumnBytes),
     ...);
    return;
  }
  const int tile = (stage - Tile::kSteps) * Tile::kProducts;
  const int end = min(tile + Tile::kProducts, Tile::kTiles);
  for (int t = tile; t < end; ++t, to += Tile::kColumnBytes) {
    copy_chunks<Tile::kSecondByRows, Tile::kChunks>(to, second, full, column, t * kChunk, kChunk,
                                                    0);
  }
}

template <typename Tile>
__device__ __forceinline__ int loaded_bytes(int stage) {
  if (stage < Tile::kSteps) return Tile::kStageBytes;
  const int left = Tile::kTiles - (stage - Tile::kSteps) * Tile::kProducts;
  return min(left, Tile::kProducts) * Tile::kColumnBytes;
}

// Loads all stages, by one thread: those of the empty ring, then the others. Given: no kernel of
// the run writes the weights.
template <typename Tile, bool Given, typename... Maps>
struct ChainLoads {
  static constexpr int kFirst = Tile::kAll < Tile::kStages ? Tile::kAll : Tile::kStages;
  unsigned ring_at;
  Ring<Tile::kStages> ring;
  ChainPlace<Tile> place;

  __device__ __forceinline__ unsigned at(int i) const {
    return ring_at + i % Tile::kStages * Tile::kStageBytes;
  }
  __device__ __forceinline__ void start(int i, const Maps&... weights) const {
    const unsigned full = ring.acquire(i, loaded_bytes<Tile>(i));
    load_weights<Tile>(at(i), full, i, place.column, weights...);
  }
  __device__ __forceinline__ void start_rows(int i, const TensorMap& rows) const {
    if (i < Tile::kSteps) ptx_copy_box(at(i), rows, ring.full(i), i * kChunk, place.row, 0);
  }

  __device__ __forceinline__ void fill(const TensorMap& rows, const Maps&... weights) const {
    if constexpr (Given) {
      for (int i = 0; i < kFirst; ++i) start(i, weights...);
    }
    ptx_await_launches();
    for (int i = 0; i < kFirst; ++i) {
      if constexpr (!Given) start(i, weights...);
      start_rows(i, rows);
    }
  }
  __device__ __forceinline__ void go_on(const TensorMap& rows, const Maps&... weights) const {
    for (int i = kFirst; i < Tile::kAll; ++i) {
      start(i, weights...);
      start_rows(i, rows);
    }
  }
};

// Adds the warpgroup's stages of the first products: every kGroups-th of them.
template <typename Tile>
__device__ __forceinline__ void multiply_first(float* sums, unsigned ring_at,
                                               const Ring<Tile::kStages>& ring, int group) {
  if (group >= Tile::kAdders) return;
  constexpr int kParts = Tile::kProducts * Tile::kChunks;
  float d[kParts][Tile::kRows / 8][4];
  clear_sums(d);
  int i = group;
#pragma unroll 1
  do {
    ring.wait_full_together(i);
    const unsigned at = ring_at + i % Tile::kStages * Tile::kStageBytes;
    pin_sums(d);
    ptx_product_fence();
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      start_chunk<typename Tile::T, Tile::kRows, Tile::kFirstByRows>(
          d[p], at + Tile::kRowBytes + p * kChunkBytes, at);
    }
    ptx_product_commit();
    pin_sums(d);
    if (i != group) {
      ptx_product_wait<1>();
      ring.release(i - Tile::kGroups);
    }
    i += Tile::kGroups;
  } while (i < Tile::kSteps);
  ptx_product_wait<0>();
  pin_sums(d);
  ring.release(i - Tile::kGroups);
  float* const to = sums + group * Tile::kRows * Tile::kFirstPitch;
#pragma unroll
  for (int p = 0; p < kParts; ++p) store_columns<Tile::kFirstPitch>(to + p * kChunk, d[p]);
}

// Adds four sums of one block or warpgroup.
__device__ __forceinline__ void add_four(float (&sums)[4], const float4& part) {
  sums[0] += part.x;
  sums[1] += part.y;
  sums[2] += part.z;
  sums[3] += part.w;
}

// The block's columns of C, in slabs as TMA would write them; zeros where rows or columns do not
// exist. Calls map(row, column, sums[product][4], values) for four columns of a row.
template <typename Tile, typename Map>
__device__ __forceinline__ void map_columns(char* mapped, const float* sums,
                                            const ChainPlace<Tile>& place, int rows, Map map) {
  using T = typename Tile::T;
  constexpr int kFours = Tile::kColumns / 4;
#pragma unroll 1
  for (int i = threadIdx.x; i < Tile::kRows * kFours; i += Tile::kThreads) {
    const int line = i / kFours, first = i % kFours * 4;
    const int row = place.row + line, column = place.column + first;
    float values[4] = {};
    if (row < rows && column < Tile::kInner) {
      float all[Tile::kProducts][4] = {};
#pragma unroll
      for (int p = 0; p < Tile::kProducts; ++p) {
#pragma unroll
        for (int w = 0; w < Tile::kAdders; ++w) {
          const float* const from =
              sums + (w * Tile::kRows + line) * Tile::kFirstPitch + p * Tile::kColumns + first;
          add_four(all[p], *reinterpret_cast<const float4*>(from));
        }
      }
      map(row, column, all, values);
    }
    Pack<T, 4> pack;
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      pack.elements[v] = Element<T>::put(column + v < Tile::kInner ? values[v] : 0);
    }
    const int eight = first / 8;
    char* const to = mapped + eight / 8 * Tile::kRowBytes + line * kSlabRowBytes +
                     ((eight & 7) ^ (line & 7)) * 16 + (first & 4) * 2;
    *reinterpret_cast<uint2*>(to) = pack.words[0];
  }
}

// The warpgroup's tiles of the second product.
template <typename Tile>
__device__ __forceinline__ void multiply_second(float* sums, unsigned mapped, unsigned ring_at,
                                                const Ring<Tile::kStages>& ring, int group) {
  constexpr int kOff = Tile::kSteps % Tile::kGroups;
#pragma unroll 1
  for (int i = Tile::kSteps + (group + Tile::kGroups - kOff) % Tile::kGroups; i < Tile::kAll;
       i += Tile::kGroups) {
    float d[Tile::kProducts][Tile::kRows / 8][4];
    clear_sums(d);
    ring.wait_full_together(i);
    const unsigned at = ring_at + i % Tile::kStages * Tile::kStageBytes + Tile::kRowBytes;
    const int tile = (i - Tile::kSteps) * Tile::kProducts;
    pin_sums(d);
    ptx_product_fence();
#pragma unroll
    for (int t = 0; t < Tile::kProducts; ++t) {
#pragma unroll
      for (int chunk = 0; chunk < Tile::kChunks; ++chunk) {
        start_chunk<typename Tile::T, Tile::kRows, Tile::kSecondByRows>(
            d[t], at + (t * Tile::kChunks + chunk) * kChunkBytes, mapped + chunk * Tile::kRowBytes);
      }
    }
    ptx_product_commit();
    ptx_product_wait<0>();
    pin_sums(d);
    ring.release(i);
#pragma unroll
    for (int t = 0; t < Tile::kProducts; ++t) {
      if (tile + t < Tile::kTiles) {
        store_columns<Tile::kSecondPitch>(sums + (tile + t) * kChunk, d[t]);
      }
    }
  }
}

// Calls each(line, column) for the block's share of the slab's groups of four columns.
template <typename Tile, typename Each>
__device__ __forceinline__ void each_own_group(const ChainPlace<Tile>& place, int rows, Each each) {
  const int from = place.part * Tile::kOwnFours;
  const int end = min(from + Tile::kOwnFours, Tile::kRows * Tile::kFours);
#pragma unroll 1
  for (int i = from + static_cast<int>(threadIdx.x); i < end; i += Tile::kThreads) {
    const int line = i / Tile::kFours;
    if (place.row + line < rows) each(line, i % Tile::kFours * 4);
  }
}

// Four sums at a place of the blocks' memory, added in the order of the blocks.
template <int Blocks>
__device__ __forceinline__ void add_cluster(float (&sums)[4], unsigned at) {
  float parts[Blocks][4];
#pragma unroll
  for (unsigned block = 0; block < Blocks; ++block) {
    ptx_load_cluster(parts[block], Blocks > 1 ? ptx_map_shared(at, block) : at);
  }
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    sums[v] = parts[0][v];
#pragma unroll
    for (int block = 1; block < Blocks; ++block) sums[v] += parts[block][v];
  }
}

// Between clusters: `partials` has a slab's sums of every cluster, `counters` a number for each
// block of a slab's clusters, 0 before and after.
struct ChainExchange {
  float* partials;
  unsigned* counters;
};

// Whether the other clusters of the slab have stored their sums of the block's share.
template <typename Tile>
__device__ __forceinline__ bool comes_last(unsigned* counter) {
  __threadfence();
  ptx_named_sync(1, Tile::kThreads);
  bool last = true;
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1) == Tile::kClusters - 1;
    if (last) atomicExch(counter, 0);
  }
  last = ptx_named_all(1, Tile::kThreads, last);
  __threadfence();
  return last;
}

// Calls finish(row, column, sums[1][4]) for four columns of each row of the block's share, once all
// blocks of the cluster have their sums.
template <typename Tile, typename Finish>
__device__ __forceinline__ void finish_chain(unsigned sums_at, const ChainPlace<Tile>& place,
                                             int rows, const ChainExchange& exchange,
                                             Finish finish) {
  const auto add = [&](float(&sums)[4], int line, int column) {
    const int at = line * Tile::kSecondPitch + column;
    add_cluster<Tile::kBlocks>(sums, sums_at + at * static_cast<int>(sizeof(float)));
  };
  if constexpr (Tile::kClusters == 1) {
    each_own_group<Tile>(place, rows, [&](int line, int column) {
      float sums[1][4];
      add(sums[0], line, column);
      finish(place.row + line, column, sums);
    });
  } else {
    constexpr int kSlab = Tile::kRows * Tile::kFours * 4;
    float* const slab = exchange.partials + place.slab * (Tile::kClusters * kSlab);
    const auto partial = [&](int cluster, int line, int column) {
      return slab + cluster * kSlab + line * Tile::kFours * 4 + column;
    };
    each_own_group<Tile>(place, rows, [&](int line, int column) {
      float sums[4];
      add(sums, line, column);
      *reinterpret_cast<float4*>(partial(place.cluster, line, column)) =
          make_float4(sums[0], sums[1], sums[2], sums[3]);
    });
    if (!comes_last<Tile>(exchange.counters + place.slab * Tile::kBlocks + place.part)) return;
    each_own_group<Tile>(place, rows, [&](int line, int column) {
      float sums[1][4] = {};
#pragma unroll
      for (int cluster = 0; cluster < Tile::kClusters; ++cluster) {
        const uint4 bits =
            ptx_load_in_order(reinterpret_cast<const uint4*>(partial(cluster, line, column)));
        add_four(sums[0], make_float4(__uint_as_float(bits.x), __uint_as_float(bits.y),
                                      __uint_as_float(bits.z), __uint_as_float(bits.w)));
      }
      finish(place.row + line, column, sums);
    });
  }
}

template <int Blocks>
__device__ __forceinline__ void meet_cluster() {
  if constexpr (Blocks > 1) {
    ptx_cluster_arrive();
    ptx_cluster_wait();
  }
}

// All threads of the block call this, kThreads and a warp more. `map` and `finish` as above.
template <typename Tile, bool Given, typename Map, typename Finish, typename... Maps>
__device__ __forceinline__ void multiply_chain(int rows, const ChainExchange& exchange, Map map,
                                               Finish finish, const TensorMap& a,
                                               const Maps&... weights) {
  static_assert(sizeof...(weights) == Tile::kProducts + 1);
  constexpr int kWarps = Tile::kThreads / 32;
  extern __shared__ char chain_smem[];
  const unsigned start = ptx_shared_address(chain_smem), memory = (start + 1023) & ~1023u;
  char* const data = chain_smem + (memory - start);
  float* const sums = reinterpret_cast<float*>(data + Tile::kSumsAt);
  const Ring<Tile::kStages> ring{memory + Tile::kBarriersAt};
  const ChainPlace<Tile> place;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const ChainLoads<Tile, Given, Maps...> loads{memory, ring, place};
  if (threadIdx.x == 0) {
    ptx_prefetch_map(a);
    (ptx_prefetch_map(weights), ...);
  }
  if (threadIdx.x == Tile::kThreads) {
    ring.init(4);  // a stage is one warpgroup's
    ptx_barrier_init_fence();
    loads.fill(a, weights...);
  }
  __syncthreads();
  if (warp >= kWarps) {
    if (threadIdx.x == Tile::kThreads) loads.go_on(a, weights...);
    __syncwarp();
    meet_cluster<Tile::kBlocks>();
    meet_cluster<Tile::kBlocks>();
    return;
  }
  multiply_first<Tile>(sums, memory, ring, warp >> 2);
  ptx_await_launches();
  ptx_named_sync(1, Tile::kThreads);
  map_columns<Tile>(data + Tile::kMappedAt, sums, place, rows, map);
  ptx_async_proxy_fence();
  ptx_named_sync(1, Tile::kThreads);
  multiply_second<Tile>(sums, memory + Tile::kMappedAt, memory, ring, warp >> 2);
  if constexpr (Tile::kBlocks > 1) {
    meet_cluster<Tile::kBlocks>();
  } else {
    ptx_named_sync(1, Tile::kThreads);
  }
  finish_chain<Tile>(memory + Tile::kSumsAt, place, rows, exchange, finish);
  // A block keeps its sums until the others have read them.
  meet_cluster<Tile::kBlocks>();
}
