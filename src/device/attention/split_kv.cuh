// Attention of few rows (split-KV, flash-decoding: Dao et al., 2023): a block has a segment of the
// keys and deals its tiles to its warps, each with a ring of its own. The states of warps and those
// of segments are merged (split_merge.cuh).
//
// A Config has that of mma_fold.cuh and of split_merge.cuh, and
//   kStages  K/V tiles of a warp in flight
//   kShared  dynamic shared memory of the tiles in bytes
// A Form has that of mma_fold.cuh and of merge.cuh, and visited(row, first, last) of mma.cuh; for
// copies by cp.async also key and value.
#pragma once

#include "device/attention/mma_fold.cuh"
#include "device/attention/split_merge.cuh"
#include "device/key_tiles.cuh"

// Tiles of a warp: every kWarps-th of the visited tiles [first, stop).
template <typename Config, typename Form, typename Visited>
struct WarpTiles {
  const Form& form;
  const typename Form::Row& block;
  const Visited& visited;
  const SegmentPlace& place;
  long long keys;
  int warp, first, stop;

  // The first key of a tile.
  __device__ __forceinline__ long long key(int tile) const {
    return visited(tile) * 1ll * Config::kKeys;
  }
};

// The results of segments, for finish_split().
struct SplitStates {
  float* states;
  unsigned* counter;
  unsigned segments, row_tiles;
};

// The ring of a warp, filled by cp.async; the queries are in shared memory before all rings.
template <typename Config, typename Q, typename K, typename V>
class LineRing {
 public:
  using Tiles = MmaTiles<Config, Q, K, V>;
  using Query = typename Tiles::template Query<16>;
  using Key = typename Tiles::Key;
  using Value = typename Tiles::Value;
  struct Queries {};  // in registers
  static constexpr int kStages = Config::kStages;
  static constexpr int kValuesAt = kStages * Key::kBytes;
  static constexpr int kStagedAt = kValuesAt + kStages * Value::kBytes;
  static constexpr int kBytes = kStagedAt + Tiles::kStagedBytes;
  static_assert(Query::kBytes + Config::kWarps * kBytes == Config::kShared);

  __device__ __forceinline__ LineRing(Operand<Q> query, Operand<K> key, Operand<V> value)
      : query_(query), key_(key), value_(value) {}

  // Begins to load, and returns the block's memory for states after the last tile.
  template <typename Of>
  __device__ __forceinline__ float* start(const Of& of, Queries&, char* memory) {
    query_tile_ = reinterpret_cast<Q*>(memory);
    ring_ = memory + Query::kBytes + of.warp * kBytes;
    Query::template load<Config::kThreads>(query_tile_, query_,
                                           query_offsets(of.form, of.block, of.place.first_row),
                                           of.place.rows - of.place.first_row, threadIdx.x);
    ptx_copy_commit();
#pragma unroll
    for (int ahead = 0; ahead < kStages - 1; ++ahead) {
      load(of, of.first + ahead * Config::kWarps, ahead);
    }
    return reinterpret_cast<float*>(memory);
  }

  // Waits for the queries.
  __device__ __forceinline__ void await_queries() const {
    ptx_copy_wait<kStages - 1>();
    __syncthreads();
  }

  template <typename Of>
  __device__ __forceinline__ void acquire(const Of& of, int tile) {
    ptx_copy_wait<kStages - 2>();
    __syncwarp();
    load(of, tile + (kStages - 1) * Config::kWarps, stage_ == 0 ? kStages - 1 : stage_ - 1);
  }
  __device__ __forceinline__ void scores(float (&s)[Config::kKeys / 8][4], const Queries&) const {
    Tiles::scores(s, query_tile_, keys(stage_));
  }
  __device__ __forceinline__ void values(float (&o)[Tiles::kColumns / 8][4],
                                         const float (&p)[Config::kKeys / 8][4]) const {
    Tiles::values(o, p, values(stage_), reinterpret_cast<V*>(ring_ + kStagedAt));
  }
  template <typename Of>
  __device__ __forceinline__ void release(const Of&, int) {
    if (++stage_ == kStages) stage_ = 0;
  }

  __device__ __forceinline__ void finish() const { ptx_copy_wait<0>(); }

 private:
  __device__ __forceinline__ K* keys(int stage) const {
    return reinterpret_cast<K*>(ring_) + stage * Key::kElements;
  }
  __device__ __forceinline__ V* values(int stage) const {
    return reinterpret_cast<V*>(ring_ + kValuesAt) + stage * Value::kElements;
  }

  template <typename Of>
  __device__ __forceinline__ void load(const Of& of, int tile, int stage) const {
    if (tile < of.stop) {
      Tiles::template load<32>(of.form, of.block, keys(stage), key_, values(stage), value_,
                               of.key(tile), of.keys, threadIdx.x & 31);
    }
    ptx_copy_commit();
  }

  const Operand<Q> query_;
  const Operand<K> key_;
  const Operand<V> value_;
  Q* query_tile_;
  char* ring_;
  int stage_ = 0;
};

// The tile at the front of a ring.
template <typename Ring>
struct RingTile {
  const Ring& ring;
  const typename Ring::Queries& queries;

  template <typename S>
  __device__ __forceinline__ void scores(S& s) const {
    ring.scores(s, queries);
  }
  template <typename O, typename P>
  __device__ __forceinline__ void values(O& o, const P& p) const {
    ring.values(o, p);
  }
};

// Computes a segment of a tile of rows, of `lines` lines over `keys` keys, with tiles in `ring`.
// Blocks and tiles have 32-bit numbers. The shuffle tells the compiler that the warp index is the
// same in all lanes.
template <typename Config, typename Form, typename Ring>
__device__ __forceinline__ void split_kv(const Form& form, Ring ring, long long lines,
                                         long long keys, const SplitStates& out) {
  extern __shared__ __align__(16) char memory[];
  const unsigned group = blockIdx.x / out.segments, segment = blockIdx.x - group * out.segments;
  const SegmentPlace place = {group / out.row_tiles, (group % out.row_tiles) * 1ll * Config::kRows,
                              lines, group, out.segments};
  const int warp = __shfl_sync(0xffffffffu, threadIdx.x >> 5, 0);
  const typename Form::Row block = form.row_of(place.other, place.first_row);
  const auto visited = form.visited(block, place.first_row,
                                    min_of(place.first_row + (Config::kRows - 1), lines - 1));
  const int tiles = visited.count(), segments = static_cast<int>(out.segments);
  const int own = (tiles + segments - 1) / segments, begin = static_cast<int>(segment) * own;
  const WarpTiles<Config, Form, decltype(visited)> of = {
      form, block, visited, place, keys, warp, begin + warp, min(tiles, begin + own)};
  typename Ring::Queries queries;
  float* const block_states = ring.start(of, queries, memory);
  const long long own_row = place.first_row + ((threadIdx.x & 31) >> 2);
  const MmaRows<Config, Form> rows = {form, block, own_row, lines, keys};
  typename Form::State states[2];
  float o[Form::kColumns / 8][4];
  rows.clear_state(states, o);
  ring.await_queries();
  for (int tile = of.first; tile < of.stop; tile += Config::kWarps) {
    ring.acquire(of, tile);
    rows.fold(states, o, of.key(tile), RingTile<Ring>{ring, queries});
    ring.release(of, tile);
  }
  ring.finish();
  finish_split<Config>(form, states, o, block_states, out.states, out.counter, place);
}

// With tiles copied by cp.async.
template <typename Config, typename Form, typename Q, typename K, typename V>
__device__ __forceinline__ void split_kv(const Form& form, Operand<Q> query, Operand<K> key,
                                         Operand<V> value, long long lines, long long keys,
                                         const SplitStates& out) {
  split_kv<Config>(form, LineRing<Config, Q, K, V>(query, key, value), lines, keys, out);
}
