// The tiles of attention for many rows on sm_90a: the order of a block's row tiles, its shared
// memory, and the producer that loads them by TMA.
//
// A Config has
//   T                 the type of the operands
//   kGroups           consumer warpgroups, of 64 rows each
//   kKeys             keys of a K/V tile, a multiple of 16
//   kStages, kQueries K tiles, and V tiles, in flight; Q tiles in flight
//   kDepth, kColumns  elements of a query and a key; columns of the values; multiples of 16
//   kClaims           row tiles differ in time: a block takes the next one when it is nearly done
//   kShared           dynamic shared memory of a block in bytes
// A Form has
//   visited(row, first, last)
//                     the tiles of keys that the rows of these lines visit (key_tiles.cuh)
//   copy_query, copy_key, copy_value(to, map, barrier, column, line, row)
//                     copy a slab
//   kTerms, kByKey, kStrips, kTermBytes, kStripBytes
//                     which bias there is, and its bytes for a warpgroup (bias_tiles.h)
#pragma once

#include "device/hopper.cuh"

// The row tiles, in sections of heads and batches whose K and V fit into the L2 cache together;
// within a section from the last lines to the first, because the first lines have the fewest keys
// under a causal mask.
struct RowTiles {
  int row_tiles, other_rows, section_rows;
  unsigned* counter;

  struct Place {
    long long other;
    int first_row;
  };
  __device__ __forceinline__ int count() const { return row_tiles * other_rows; }
  template <int Rows>
  __device__ __forceinline__ Place place(int work) const {
    const int section = work / (section_rows * row_tiles);
    const int inside = work - section * section_rows * row_tiles;
    const int here = min(section_rows, other_rows - section * section_rows);
    const int from_last = inside / here;
    return {(section * section_rows + inside - from_last * here) & 0x7fffffff,
            (row_tiles - 1 - from_last) * Rows};
  }
};

// A block's shared memory: rings of Q, K and V tiles, their barriers, and each warpgroup's bias.
template <typename Config, typename Form>
struct HopperMemory {
  static constexpr int kRows = Config::kGroups * 64, kStages = Config::kStages;
  static constexpr int kQueryBytes = tile_bytes(kRows, Config::kDepth);
  static constexpr int kKeyBytes = tile_bytes(Config::kKeys, Config::kDepth);
  static constexpr int kValueBytes = tile_bytes(Config::kKeys, Config::kColumns);
  static constexpr int kKeysAt = Config::kQueries * kQueryBytes;
  static constexpr int kValuesAt = kKeysAt + kStages * kKeyBytes;
  static constexpr int kBarriersAt = kValuesAt + kStages * kValueBytes;
  static constexpr int kAlignment = 1024, kWorksAt = 512, kBarrierBytes = 1024;
  static constexpr int kBiasBytes = Form::kTermBytes + Form::kStripBytes;
  static_assert(kAlignment + kBarriersAt + kBarrierBytes + Config::kGroups * kBiasBytes ==
                Config::kShared);

  char* memory;
  unsigned tiles;  // the address of the first tile

  __device__ __forceinline__ explicit HopperMemory(char* begin)
      : memory(begin), tiles((ptx_shared_address(begin) + (kAlignment - 1)) & ~(kAlignment - 1u)) {}

  __device__ __forceinline__ unsigned barriers() const { return tiles + kBarriersAt; }
  __device__ __forceinline__ char* at(unsigned address) const {
    return memory + (address - ptx_shared_address(memory));
  }
  __device__ __forceinline__ Ring<Config::kQueries> q_ring() const { return {barriers()}; }
  __device__ __forceinline__ Ring<kStages> k_ring() const {
    return {barriers() + 16 * Config::kQueries};
  }
  __device__ __forceinline__ Ring<kStages> v_ring() const {
    return {barriers() + 16 * (Config::kQueries + kStages)};
  }
  // Numbers of row tiles, from the producer to the consumers.
  __device__ __forceinline__ Ring<2> work_ring() const {
    return {barriers() + 16 * (Config::kQueries + 2 * kStages)};
  }
  __device__ __forceinline__ int* works() const {
    return reinterpret_cast<int*>(at(barriers() + kWorksAt));
  }
  __device__ __forceinline__ unsigned query(unsigned item) const {
    return tiles + item % Config::kQueries * kQueryBytes;
  }
  __device__ __forceinline__ unsigned key(unsigned use) const {
    return tiles + kKeysAt + use % kStages * kKeyBytes;
  }
  __device__ __forceinline__ unsigned value(unsigned use) const {
    return tiles + kValuesAt + use % kStages * kValueBytes;
  }
  __device__ __forceinline__ char* bias(int group) const {
    return at(barriers() + kBarrierBytes) + group * kBiasBytes;
  }

  __device__ __forceinline__ void init() const {
    if (threadIdx.x == 0) {
      q_ring().init(4 * Config::kGroups);
      k_ring().init(4 * Config::kGroups);
      v_ring().init(4 * Config::kGroups);
      work_ring().init(4 * Config::kGroups);
      ptx_barrier_init_fence();
    }
    __syncthreads();
  }
};

// Loads the tiles of row tile after row tile, by one thread.
template <typename Config, typename Form>
__device__ __forceinline__ void produce(const Form& form, const AttentionTensors& tensors,
                                        const HopperMemory<Config, Form>& memory,
                                        const RowTiles& rows, long long lines) {
  using Memory = HopperMemory<Config, Form>;
  const auto q_ring = memory.q_ring();
  const auto k_ring = memory.k_ring(), v_ring = memory.v_ring();
  ptx_prefetch_map(tensors.query);
  ptx_prefetch_map(tensors.key);
  ptx_prefetch_map(tensors.value);
  unsigned item = 0, use = 0;
  int work = blockIdx.x;
  while (true) {
    memory.work_ring().acquire(item);
    memory.works()[item % 2] = work;
    memory.work_ring().fill(item);
    if (work >= rows.count()) break;
    const RowTiles::Place at = rows.template place<Memory::kRows>(work);
    const typename Form::Row row = form.row_of(at.other, at.first_row);
    const auto visited =
        form.visited(row, at.first_row,
                     static_cast<int>(min_of(at.first_row + (Memory::kRows - 1ll), lines - 1)));
    const int tiles = visited.count();
    const unsigned q_full = q_ring.acquire(item, Memory::kQueryBytes);
    const unsigned q_tile = memory.query(item++);
#pragma unroll
    for (int c = 0; c < Config::kDepth; c += kSlabColumns) {
      form.copy_query(q_tile + tile_bytes(Memory::kRows, c), tensors.query, q_full, c, at.first_row,
                      row);
    }
    for (int tile = 0; tile < tiles; ++tile, ++use) {
      const int line = visited(tile) * Config::kKeys;
      const unsigned k_full = k_ring.acquire(use, Memory::kKeyBytes);
#pragma unroll
      for (int c = 0; c < Config::kDepth; c += kSlabColumns) {
        form.copy_key(memory.key(use) + tile_bytes(Config::kKeys, c), tensors.key, k_full, c, line,
                      row);
      }
      const unsigned v_full = v_ring.acquire(use, Memory::kValueBytes);
#pragma unroll
      for (int c = 0; c < Config::kColumns; c += kSlabColumns) {
        form.copy_value(memory.value(use) + tile_bytes(Config::kKeys, c), tensors.value, v_full, c,
                        line, row);
      }
    }
    work = Config::kClaims ? next_work(rows.counter, rows.count())
                           : work + static_cast<int>(gridDim.x);
  }
}
