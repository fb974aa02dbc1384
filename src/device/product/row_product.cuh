// Products with few columns on sm_90a, whose rows stay in shared memory for what follows: a block
// has all columns of a tile of rows, so that reductions along a row need no other block. The blocks
// of a cluster divide the contracted axis; each adds the parts of its share of the tile's rows, in
// the order of the blocks. One warp loads operands through a ring of TMA copies, the others
// multiply, then take the rows.
#pragma once

#include "device/hopper.cuh"
#include "device/math.cuh"
#include "device/product/product_ring.cuh"
#include "device/ptx.cuh"
#include "device/ptx_barrier.cuh"
#include "device/ptx_hopper.cuh"

// Rows: 64 or 128. Columns: a multiple of 16 up to 256, at least those of the product. S: the type
// to which sums are rounded, in rows of Pitch elements. ByRows: the columns are contiguous along
// the contracted axis. Resident: blocks of a multiprocessor, so that clusters fit beside each
// other.
template <typename T_, typename S_, int Rows, int Columns, int Pitch, int Blocks, int Resident,
          bool ByRows>
struct RowProductTile {
  using T = T_;
  using S = S_;
  static constexpr int kRows = Rows, kColumns = Columns, kPitch = Pitch, kBlocks = Blocks;
  static constexpr int kProducts = 1;
  static constexpr bool kByRows = ByRows;
  static constexpr int kWarps = Rows / 16, kThreads = kWarps * 32;  // that multiply
  static constexpr int kSlabs = (Columns + kSlabColumns - 1) / kSlabColumns;
  static constexpr int kRowBytes = Rows * kSlabRowBytes;
  static constexpr int kColumnBytes = ByRows ? Columns * kSlabRowBytes : kSlabs * kStageSlabBytes;
  static constexpr int kStageBytes = kRowBytes + kColumnBytes;
  static constexpr int kRingBytes = (192 << 10) / Resident, kMostStages = 12;
  static constexpr int kStages =
      kRingBytes / kStageBytes < kMostStages ? kRingBytes / kStageBytes : kMostStages;
  // Sums of a block, of which the first elements of rows start in different banks.
  static constexpr int kSumPitch = (Columns + 31) / 32 * 32 + 8;
  static constexpr int kOwnRows = Rows / Blocks;
  static constexpr int kSumBytes = Blocks > 1 ? Rows* kSumPitch * 4 : 0;
  static constexpr int kDataBytes = kStages * kStageBytes;
  static_assert(kSumBytes + kOwnRows * Pitch * static_cast<int>(sizeof(S)) <= kDataBytes);
};

// The block's operands of one stage.
template <typename Tile>
__device__ __forceinline__ void load_stage(unsigned to, const TensorMap& a, const TensorMap& b,
                                           unsigned full, int row, int depth) {
  ptx_copy_box(to, a, full, depth, row, 0);
  load_columns<Tile::kByRows, Tile::kColumns>(to + Tile::kRowBytes, b, full, 0, depth, 0);
}

// Stores the fragments of a warp's 16 rows: pairs of adjacent columns in rows of Pitch elements.
template <int Pitch, int N, typename S>
__device__ __forceinline__ void store_fragments(S* to, const float (&d)[N][4]) {
  const int lane = threadIdx.x & 31;
  S* const row = to + ((threadIdx.x >> 5) * 16 + (lane >> 2)) * Pitch + (lane & 3) * 2;
#pragma unroll
  for (int n = 0; n < N; ++n) {
    store_pair(row, n * 8, {d[n][0], d[n][1]});
    store_pair(row + 8 * Pitch, n * 8, {d[n][2], d[n][3]});
  }
}

// Adds the blocks' sums of this block's rows, and rounds them to `to`.
template <typename Tile>
__device__ __forceinline__ void add_parts(typename Tile::S* to, unsigned sums, int part) {
  constexpr int kQuads = Tile::kColumns / 4, kAll = Tile::kOwnRows * kQuads;
#pragma unroll 1
  for (int i = threadIdx.x; i < kAll; i += Tile::kThreads) {
    const int row = i / kQuads, column = i % kQuads * 4;
    const unsigned from =
        sums + ((part * Tile::kOwnRows + row) * Tile::kSumPitch + column) * sizeof(float);
    float parts[Tile::kBlocks][4];
#pragma unroll
    for (unsigned block = 0; block < Tile::kBlocks; ++block) {
      ptx_load_cluster(parts[block], ptx_map_shared(from, block));
    }
#pragma unroll
    for (int pair = 0; pair < 4; pair += 2) {
      float sum[2] = {};
#pragma unroll
      for (int block = 0; block < Tile::kBlocks; ++block) {
        sum[0] += parts[block][pair];
        sum[1] += parts[block][pair + 1];
      }
      store_pair(to, row * Tile::kPitch + column + pair, sum);
    }
  }
}

// Calls finish(from, first, end) in every warp that multiplies: element c of the product's row r of
// [first, end) is from[r · Pitch + c]. `a` has `rows` rows, `depth` is the length of the contracted
// axis. All threads of the block call this, kThreads and a warp more.
template <typename Tile, typename Finish>
__device__ __forceinline__ void multiply_rows(const TensorMap& a, const TensorMap& b,
                                              long long rows, int depth, Finish finish) {
  using S = typename Tile::S;
  extern __shared__ char product_smem[];
  const unsigned start = ptx_shared_address(product_smem), ring_at = (start + 1023) & ~1023u;
  char* const data = product_smem + (ring_at - start);
  const Ring<Tile::kStages> ring{ring_at + Tile::kDataBytes};
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const int part = Tile::kBlocks > 1 ? ptx_cluster_rank() : 0;
  const long long tile = static_cast<long long>(blockIdx.x / Tile::kBlocks) * Tile::kRows;
  const int steps = (depth + kStageDepth - 1) / kStageDepth;
  // At least one stage, of zeros behind the axis where it has fewer than the cluster has blocks.
  const int from = steps < Tile::kBlocks ? part : steps * part / Tile::kBlocks;
  const int to = max(steps * (part + 1) / Tile::kBlocks, from + 1);
  if (threadIdx.x == 0) {
    ring.init(Tile::kWarps);
    ptx_barrier_init_fence();
  }
  __syncthreads();
  if (warp >= Tile::kWarps) {
    if (threadIdx.x == Tile::kThreads) {
      for (int i = from; i < to; ++i) {
        const unsigned full = ring.acquire(i - from, Tile::kStageBytes);
        load_stage<Tile>(ring_at + (i - from) % Tile::kStages * Tile::kStageBytes, a, b, full,
                         static_cast<int>(tile), i * kStageDepth);
      }
    }
    __syncwarp();
    if constexpr (Tile::kBlocks > 1) {
      ptx_cluster_arrive();
      ptx_cluster_wait();
      ptx_cluster_arrive();
      ptx_cluster_wait();
    }
  } else {
    const long long first = tile + part * Tile::kOwnRows;
    const long long end = min_of(rows, first + Tile::kOwnRows);
    S* const own = reinterpret_cast<S*>(data + Tile::kSumBytes);
    {
      float d[1][Tile::kColumns / 8][4];
      multiply_stages<Tile>(d, ring_at, ring, to - from);
      // Sums take the place of the ring, which all warps have read.
      ptx_named_sync(1, Tile::kThreads);
      if constexpr (Tile::kBlocks > 1) {
        store_fragments<Tile::kSumPitch>(reinterpret_cast<float*>(data), d[0]);
      } else {
        store_fragments<Tile::kPitch>(own, d[0]);
      }
    }
    if constexpr (Tile::kBlocks > 1) {
      ptx_cluster_arrive();
      ptx_cluster_wait();
      add_parts<Tile>(own, ring_at, part);
      ptx_cluster_arrive();
    }
    ptx_named_sync(1, Tile::kThreads);
    finish(own - first * Tile::kPitch, first, end);
    // A block keeps its sums until the others have read them.
    if constexpr (Tile::kBlocks > 1) ptx_cluster_wait();
  }
}
