// The tiles of attention for large heads on sm_90a: a block's rows and keys, its shared memory, and
// the producer that loads them by TMA.
//
// A Config has
//   T                      the type of the operands
//   kKeys                  keys of a tile
//   kKeyStages, kValueStages
//                          K and V tiles in flight; 0: values are columns of the K tiles
//   kValueSlab             the slab of a K tile where these begin
//   kPartSlabs             slabs of a part of Q and K, which has a barrier: the product starts with
//                          the first part
//   kScorers               warpgroups that compute scores, each of kKeys / kScorers: 1 or 2
//   kCluster               blocks of a cluster that share the keys of their rows: 1 or 2
//   kSegmented             states of segments are stored, for merge_row()
//   kDepth, kColumns       columns of the operands, multiples of 16
//   kGroupColumns          value columns of a warpgroup, whole slabs
//   kShared                dynamic shared memory of a block in bytes
// A Form has kScalarPlaces, the scalars of a row that warpgroups exchange at most, and copy_query,
// copy_key and copy_value of hopper_tiles.cuh.
#pragma once

#include "device/wide.cuh"

template <typename Config, typename Form>
struct WideMemory {
  static constexpr int kPartColumns = Config::kPartSlabs * kSlabColumns;
  static constexpr int kParts = (Config::kDepth + kPartColumns - 1) / kPartColumns;
  static constexpr bool kApart = Config::kValueStages > 0;
  static constexpr int kQuerySlab = kWideRows * kSlabRowBytes;
  static constexpr int kKeySlab = Config::kKeys * kSlabRowBytes;
  static constexpr int kKeyBytes = tile_bytes(Config::kKeys, Config::kDepth);
  static constexpr int kValueBytes = tile_bytes(Config::kKeys, Config::kColumns);
  static constexpr int kKeysAt = tile_bytes(kWideRows, Config::kDepth);
  static constexpr int kValuesAt = kKeysAt + Config::kKeyStages * kKeyBytes;
  static constexpr int kWeightsAt = kValuesAt + Config::kValueStages * kValueBytes;
  static constexpr int kReducedAt = kWeightsAt + kQuerySlab;
  static constexpr int kBarriersAt = kReducedAt + Form::kScalarPlaces * 2 * kWideRows * 4;
  static constexpr int kRings = kParts * (1 + Config::kKeyStages) + Config::kValueStages;
  static constexpr int kAlignment = 1024;
  static_assert(kBarriersAt + kRings * 16 + kAlignment == Config::kShared);
  // Of the states of rows that the cluster exchanges, behind their values.
  static constexpr int kHeadsAt = 2 * Config::kGroupColumns * kWideRows * 4;

  char* memory;

  __device__ __forceinline__ explicit WideMemory(char* begin)
      : memory(begin + (-ptx_shared_address(begin) & (kAlignment - 1))) {}

  __device__ __forceinline__ unsigned tiles() const { return ptx_shared_address(memory); }
  __device__ __forceinline__ unsigned key(int use) const {
    return tiles() + kKeysAt + use % Config::kKeyStages * kKeyBytes;
  }
  __device__ __forceinline__ unsigned value(int use) const {
    if constexpr (kApart) {
      return tiles() + kValuesAt + use % Config::kValueStages * kValueBytes;
    } else {
      return key(use) + Config::kValueSlab * kKeySlab;
    }
  }
  __device__ __forceinline__ unsigned weights() const { return tiles() + kWeightsAt; }
  __device__ __forceinline__ char* weights_tile() const { return memory + kWeightsAt; }
  __device__ __forceinline__ float* reduced() const {
    return reinterpret_cast<float*>(memory + kReducedAt);
  }
  __device__ __forceinline__ Ring<kParts> q_ring() const { return {tiles() + kBarriersAt}; }
  __device__ __forceinline__ Ring<kParts * Config::kKeyStages> k_ring() const {
    return {tiles() + kBarriersAt + 16 * kParts};
  }
  __device__ __forceinline__ Ring<kApart ? Config::kValueStages : 1> v_ring() const {
    return {tiles() + kBarriersAt + 16 * kParts * (1 + Config::kKeyStages)};
  }

  __device__ __forceinline__ void init() const {
    if (threadIdx.x == 0) {
      q_ring().init(8);
      k_ring().init(8);
      if constexpr (kApart) v_ring().init(8);
      ptx_barrier_init_fence();
    }
    __syncthreads();
  }
};

struct WideSegments {
  int segments, row_tiles;
  float* states;
};

// A block's rows, and its segment of the keys.
struct WidePlace {
  long long other;
  int row_tile, first_row, segment, rank;

  // Clusters with the same keys are adjacent. The last rows come first, because they have the most
  // keys under a causal mask.
  template <int Cluster>
  static __device__ __forceinline__ WidePlace of(const WideSegments& segments) {
    const int work = blockIdx.x / Cluster;
    const int keyed = work / segments.row_tiles;
    const int row_tile = segments.row_tiles - 1 - (work - keyed * segments.row_tiles);
    const long long other = keyed / segments.segments;
    return {other, row_tile, row_tile * kWideRows,
            keyed - static_cast<int>(other) * segments.segments,
            Cluster > 1 ? static_cast<int>(ptx_cluster_rank()) : 0};
  }
};

// A block's part of the tiles that its rows visit.
template <typename Visited>
struct WideTiles {
  const Visited& visited;
  const int first_row, before, tiles;

  template <int Keys>
  __device__ __forceinline__ int first_key(int use) const {
    return visited(before + use) * Keys;
  }
};

// Loads a block's tiles, by one thread. Each part of Q is loaded before the same part of the first
// K tile.
template <typename Config, typename Form, typename Visited>
__device__ __forceinline__ void produce_wide(const Form& form, const AttentionTensors& tensors,
                                             const WideMemory<Config, Form>& memory,
                                             const typename Form::Row& row,
                                             const WideTiles<Visited>& of) {
  using Memory = WideMemory<Config, Form>;
  ptx_prefetch_map(tensors.query);
  ptx_prefetch_map(tensors.key);
  if constexpr (Memory::kApart) ptx_prefetch_map(tensors.value);
  for (int use = 0; use < of.tiles; ++use) {
    const int line = of.first_key<Config::kKeys>(use);
#pragma unroll
    for (int p = 0; p < Memory::kParts; ++p) {
      const int from = p * Memory::kPartColumns;
      const int end = min(Config::kDepth, from + Memory::kPartColumns);
      if (use == 0) {
        const unsigned full = memory.q_ring().acquire(p, tile_bytes(kWideRows, end - from));
#pragma unroll
        for (int c = from; c < end; c += kSlabColumns) {
          form.copy_query(memory.tiles() + c / kSlabColumns * Memory::kQuerySlab, tensors.query,
                          full, c, of.first_row, row);
        }
      }
      const unsigned full =
          memory.k_ring().acquire(use * Memory::kParts + p, tile_bytes(Config::kKeys, end - from));
#pragma unroll
      for (int c = from; c < end; c += kSlabColumns) {
        form.copy_key(memory.key(use) + c / kSlabColumns * Memory::kKeySlab, tensors.key, full, c,
                      line, row);
      }
    }
    if constexpr (Memory::kApart) {
      const unsigned full = memory.v_ring().acquire(use, Memory::kValueBytes);
#pragma unroll
      for (int c = 0; c < Config::kColumns; c += kSlabColumns) {
        form.copy_value(memory.value(use) + c / kSlabColumns * Memory::kKeySlab, tensors.value,
                        full, c, line, row);
      }
    }
  }
}
