// Attention for many rows, by mma.sync (FlashAttention-2: Dao, 2023): a block has a tile of rows,
// 16 for each warp, and iterates over K/V tiles, which it copies to shared memory by cp.async.
//
// A Config has that of mma_fold.cuh, and
//   kWarps, kStages  warps of a block; K/V tiles in flight, 1 or 2
//   kShared          dynamic shared memory of a block in bytes
// A Form has that of mma_fold.cuh, and
//   key(row, at, e), value(row, at, column)
//                    offsets of elements
//   visited(row, first, last)
//                    the tiles of keys that the rows of the lines [first, last] visit
//                    (key_tiles.cuh)
#pragma once

#include "device/attention/mma_fold.cuh"
#include "device/key_tiles.cuh"

// A block's shared memory: the queries, the stages of keys, those of values, and each warp's
// weights.
template <typename Config, typename Q, typename K, typename V>
struct FlashMemory {
  using Tiles = MmaTiles<Config, Q, K, V>;
  static constexpr int kRows = Config::kWarps * 16, kThreads = Config::kWarps * 32;
  using Query = typename Tiles::template Query<kRows>;
  using Key = typename Tiles::Key;
  using Value = typename Tiles::Value;
  static constexpr int kKeysAt = Query::kBytes;
  static constexpr int kValuesAt = kKeysAt + Config::kStages * Key::kBytes;
  static constexpr int kStagedAt = kValuesAt + Config::kStages * Value::kBytes;
  static_assert(kStagedAt + Config::kWarps * Tiles::kStagedBytes == Config::kShared);

  char* memory;
  int warp, stage;  // of the thread; of the tile that is folded

  __device__ __forceinline__ Q* query() const { return reinterpret_cast<Q*>(memory); }
  __device__ __forceinline__ K* keys(int i) const {
    return reinterpret_cast<K*>(memory + kKeysAt) + i * Key::kElements;
  }
  __device__ __forceinline__ V* values(int i) const {
    return reinterpret_cast<V*>(memory + kValuesAt) + i * Value::kElements;
  }

  __device__ __forceinline__ void scores(float (&s)[Config::kKeys / 8][4]) const {
    Tiles::scores(s, query() + warp * (Query::kElements / Config::kWarps), keys(stage));
  }
  __device__ __forceinline__ void values(float (&o)[Tiles::kColumns / 8][4],
                                         const float (&p)[Config::kKeys / 8][4]) const {
    Tiles::values(o, p, values(stage),
                  reinterpret_cast<V*>(memory + kStagedAt + warp * Tiles::kStagedBytes));
  }
};

// Computes the outputs of a tile of `lines` lines, of which there are `row_tiles` for each other
// coordinate, over `keys` keys.
template <typename Config, typename Form, typename Q, typename K, typename V>
__device__ __forceinline__ void flash_mma(const Form& form, Operand<Q> query, Operand<K> key,
                                          Operand<V> value, long long lines, long long keys,
                                          long long row_tiles) {
  using Memory = FlashMemory<Config, Q, K, V>;
  using Tiles = typename Memory::Tiles;
  extern __shared__ __align__(16) char memory[];
  Memory shared{memory, static_cast<int>(threadIdx.x >> 5), 0};
  const long long other = floor_div(blockIdx.x, row_tiles);
  const long long first_row = (blockIdx.x - other * row_tiles) * Memory::kRows;
  const typename Form::Row block = form.row_of(other, first_row);
  const auto visited =
      form.visited(block, first_row, min_of(first_row + (Memory::kRows - 1), lines - 1));
  const int tiles = visited.count();
  Memory::Query::template load<Memory::kThreads>(
      shared.query(), query, query_offsets(form, block, first_row), lines - first_row, threadIdx.x);
  const auto load_keys = [&](int tile, int stage) {
    Tiles::template load<Memory::kThreads>(form, block, shared.keys(stage), key,
                                           shared.values(stage), value,
                                           visited(tile) * 1ll * Config::kKeys, keys, threadIdx.x);
    ptx_copy_commit();
  };
  const long long own = first_row + shared.warp * 16 + ((threadIdx.x & 31) >> 2);
  const MmaRows<Config, Form> rows = {form, block, own, lines, keys};
  typename Form::State states[2];
  float o[Form::kColumns / 8][4];
  rows.clear_state(states, o);
  if (Config::kStages == 2 && tiles > 0) load_keys(0, 0);
  for (int tile = 0; tile < tiles; ++tile) {
    if constexpr (Config::kStages == 2) {
      if (tile + 1 < tiles) {
        load_keys(tile + 1, shared.stage ^ 1);
      } else {
        ptx_copy_commit();
      }
      ptx_copy_wait<1>();
    } else {
      load_keys(tile, 0);
      ptx_copy_wait<0>();
    }
    __syncthreads();
    rows.fold(states, o, visited(tile) * 1ll * Config::kKeys, shared);
    if constexpr (Config::kStages == 2) shared.stage ^= 1;
    __syncthreads();
  }
  rows.write(states, o);
}
