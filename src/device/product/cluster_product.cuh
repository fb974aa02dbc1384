// Products with an epilogue on sm_90a whose tiles are too few to fill the GPU: the blocks of a
// cluster divide the contracted axis, add their sums through distributed shared memory in a fixed
// order, and finish a share of the tile's rows each. One warp loads operands through a ring of TMA
// copies, the others multiply by wgmma.
//
// A launch that starts early fills the ring with given columns while the kernels before it still
// run (programmatic dependent launch).
#pragma once

#include "device/maps/group.cuh"
#include "device/math.cuh"
#include "device/product/cluster_tile.cuh"
#include "device/product/part_stages.cuh"
#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"
#include "device/ptx_hopper.cuh"

// The depth is in pairs of elements of 8 bits, and in halves of floats.
struct ClusterSizes {
  int rows, columns, depth;
};

// Where the block's tile begins, and the stages of the contracted axis that it adds. Every block
// has one at least: the launch has as many stages as blocks of a cluster.
template <typename Tile>
struct ClusterPlace {
  int row, column, batch, part, from, to;

  __device__ __forceinline__ explicit ClusterPlace(const ClusterSizes& sizes)
      : row(static_cast<int>(blockIdx.y) * Tile::kLines),
        column(static_cast<int>(blockIdx.x) / Tile::kBlocks * Tile::kColumns),
        batch(static_cast<int>(blockIdx.z)),
        part(static_cast<int>(blockIdx.x) % Tile::kBlocks) {
    const int steps = (sizes.depth + kStageDepth - 1) / kStageDepth;
    from = steps * part / Tile::kBlocks;
    to = steps * (part + 1) / Tile::kBlocks;
  }
};

// Loads one product's columns of a step.
template <typename Tile>
__device__ __forceinline__ void load_step(unsigned to, const TensorMap& b, unsigned full,
                                          int column, int step, int batch) {
  if constexpr (Tile::kParts) {
    load_lines<Tile::kByRows, Tile::kColumns>(to, b, full, column, step, batch);
  } else {
    load_columns<Tile::kByRows, Tile::kColumns>(to, b, full, column, step * kStageDepth, batch);
  }
}

// Loads the block's stages, by one thread. Given: no kernel of the run writes the right-hand sides.
// Batches: of the operands, 0 for one that all batches share.
template <typename Tile, bool Given, typename... Maps>
__device__ __forceinline__ void load_stages(unsigned ring_at, const Ring<Tile::kStages>& ring,
                                            const ClusterPlace<Tile>& place, int a_batch,
                                            int b_batch, const TensorMap& a, const Maps&... b) {
  const int count = place.to - place.from, first = min(count, Tile::kStages);
  const auto start = [&](int i) {
    const unsigned full = ring.acquire(i, Tile::kLoadedBytes);
    unsigned at = ring_at + i % Tile::kStages * Tile::kStageBytes + Tile::kRowBytes;
    ((load_step<Tile>(at, b, full, place.column, place.from + i, b_batch),
      at += Tile::kColumnBytes),
     ...);
  };
  const auto load_rows = [&](int i) {
    const unsigned at = ring_at + i % Tile::kStages * Tile::kStageBytes;
    load_lines<!Tile::kRowsByTerms, Tile::kLines>(at, a, ring.full(i), place.row, place.from + i,
                                                  a_batch);
  };
  if constexpr (Given) {
    for (int i = 0; i < first; ++i) start(i);
  }
  ptx_await_launches();
  for (int i = 0; i < first; ++i) {
    if constexpr (!Given) start(i);
    load_rows(i);
  }
  for (int i = first; i < count; ++i) {
    start(i);
    load_rows(i);
  }
}

// Stores the fragments of a warp's rows that exist, in rows of kPitch floats.
template <typename Tile>
__device__ __forceinline__ void store_sums(
    float* to, const float (&d)[Tile::kProducts][Tile::kColumns / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) & 31;
  const int line = (static_cast<int>(threadIdx.x) >> 5) * 16 + (lane >> 2);
  float* const row = to + line * Tile::kPitch + (lane & 3) * 2;
#pragma unroll
  for (int p = 0; p < Tile::kProducts; ++p) {
#pragma unroll
    for (int n = 0; n < Tile::kColumns / 8; ++n) {
      const int at = p * Tile::kColumns + n * 8;
      if (line < Tile::kLines) store_pair(row, at, {d[p][n][0], d[p][n][1]});
      if (line + 8 < Tile::kLines) {
        store_pair(row + 8 * Tile::kPitch, at, {d[p][n][2], d[p][n][3]});
      }
    }
  }
}

// Adjacent sums at a place of the blocks' memory, added in the order of the blocks.
template <int Blocks, int Width>
__device__ __forceinline__ void add_blocks(float (&sums)[Width], unsigned at) {
  float parts[Blocks][Width / 4][4];
#pragma unroll
  for (unsigned block = 0; block < Blocks; ++block) {
    const unsigned from = Blocks > 1 ? ptx_map_shared(at, block) : at;
#pragma unroll
    for (int i = 0; i < Width / 4; ++i) ptx_load_cluster(parts[block][i], from + i * 16);
  }
#pragma unroll
  for (int v = 0; v < Width; ++v) {
    sums[v] = parts[0][v / 4][v % 4];
#pragma unroll
    for (int block = 1; block < Blocks; ++block) sums[v] += parts[block][v / 4][v % 4];
  }
}

// Calls finish(row, column, sums[product][kWidth]) for adjacent columns of each row that the block
// finishes; the row and the first of the columns exist.
template <typename Tile, typename Finish>
__device__ __forceinline__ void finish_rows(unsigned sums_at, const ClusterPlace<Tile>& place,
                                            const ClusterSizes& sizes, Finish finish) {
#pragma unroll 2
  for (int i = threadIdx.x; i < Tile::kOwnLines * Tile::kGroups; i += Tile::kThreads) {
    const int line = place.part * Tile::kOwnLines + i / Tile::kGroups;
    const int group = i % Tile::kGroups;
    const int row = place.row + line, column = place.column + group * Tile::kWidth;
    if (row >= sizes.rows || column >= sizes.columns) continue;
    float sums[Tile::kProducts][Tile::kWidth];
#pragma unroll
    for (int p = 0; p < Tile::kProducts; ++p) {
      const int at = line * Tile::kPitch + p * Tile::kColumns + group * Tile::kWidth;
      add_blocks<Tile::kBlocks>(sums[p], sums_at + at * static_cast<int>(sizeof(float)));
    }
    finish(row, column, sums);
  }
}

// All threads of the block call this: kThreads, a warp that loads, and kSplitWarps. `finish` as
// above.
template <typename Tile, bool Given, typename Finish, typename... Maps>
__device__ __forceinline__ void multiply_cluster(const ClusterSizes& sizes, bool a_batches,
                                                 bool b_batches, Finish finish, const TensorMap& a,
                                                 const Maps&... b) {
  static_assert(sizeof...(b) == Tile::kProducts);
  extern __shared__ char cluster_smem[];
  const unsigned start = ptx_shared_address(cluster_smem), memory = (start + 1023) & ~1023u;
  const Ring<Tile::kStages> ring{memory + Tile::kDataBytes};
  const SplitBarriers<Tile> split{ring.barriers + 2 * Tile::kStages * 8};
  char* const stages = cluster_smem + (memory - start);
  const ClusterPlace<Tile> place(sizes);
  const int steps = place.to - place.from;
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  if (threadIdx.x == 0) {
    ring.init(Tile::kWarps);
    if constexpr (Tile::kParts) split.init();
    ptx_barrier_init_fence();
  }
  if (threadIdx.x == Tile::kThreads) {
    ptx_prefetch_map(a);
    (ptx_prefetch_map(b), ...);
  }
  __syncthreads();
  constexpr bool kMovesRegisters = Tile::kParts && Tile::kRows > 64;
  if (warp >= Tile::kWarps) {
    if constexpr (kMovesRegisters) ptx_give_registers<88>();
    if (warp > Tile::kWarps) {
      split_stages<Tile>(stages, ring, split, steps, warp - Tile::kWarps - 1);
    } else if (threadIdx.x == Tile::kThreads) {
      load_stages<Tile, Given>(memory, ring, place, a_batches ? place.batch : 0,
                               b_batches ? place.batch : 0, a, b...);
    }
    __syncwarp();
    if constexpr (Tile::kBlocks > 1) {
      ptx_cluster_arrive();
      ptx_cluster_wait();
      ptx_cluster_arrive();
      ptx_cluster_wait();
    }
    return;
  }
  if constexpr (kMovesRegisters) ptx_take_registers<208>();
  {
    float d[Tile::kProducts][Tile::kColumns / 8][4];
    if constexpr (Tile::kParts) {
      multiply_part_stages<Tile>(d, stages, memory, ring, split, steps);
    } else if constexpr (sizeof(typename Tile::T) == 1) {
      multiply_code_stages<Tile>(d, memory, ring, steps);
    } else {
      multiply_stages<Tile>(d, memory, ring, steps);
    }
    // Sums take the place of the ring, which all warps have read.
    ptx_named_sync(1, Tile::kThreads);
    store_sums<Tile>(reinterpret_cast<float*>(stages), d);
  }
  ptx_await_launches();
  if constexpr (Tile::kBlocks > 1) {
    ptx_cluster_arrive();
    ptx_cluster_wait();
  } else {
    ptx_named_sync(1, Tile::kThreads);
  }
  finish_rows<Tile>(memory, place, sizes, finish);
  // A block keeps its sums until the others have read them.
  if constexpr (Tile::kBlocks > 1) {
    ptx_cluster_arrive();
    ptx_cluster_wait();
  }
}
