// Split-KV attention whose keys and values TMA copies, on sm_90 (split.cuh).
//
// A Config is that of split_kv.cuh. A Form has, in place of key and value,
//   copy_key(to, map, barrier, column, from, row), copy_value(…)
//                    copies a slab of the keys from `from` on, with the columns from `column` on
#pragma once

#include "device/attention/split_kv.cuh"
#include "device/ptx_hopper.cuh"
#include "device/split.cuh"

#if __CUDA_ARCH__ >= 900
// The ring of a warp, in shared memory aligned to kBoxAlignment; the barriers are behind all rings.
constexpr int kBoxAlignment = 1024;

// Keys or values of T that TMA copies.
template <typename T>
struct Boxes {
  const TensorMap& map;
};
template <typename T>
__device__ __forceinline__ Boxes<T> boxes(const TensorMap& map) {
  return {map};
}

// Queries and keys of T, values of V.
template <typename Config, typename T, typename V>
class BoxRing {
 public:
  static constexpr int kDepth = padded(Config::kDepth), kColumns = padded(Config::kColumns);
  struct Queries {
    unsigned parts[kDepth / 16][4];
  };
  static constexpr int kKeys = Config::kKeys, kStages = Config::kStages;
  static constexpr int kSlabBytes = kKeys * kSlabRowBytes;
  static constexpr int kKeyBytes = (kDepth + kSlabColumns - 1) / kSlabColumns * kSlabBytes;
  static constexpr int kValueBytes = (kColumns + kSlabColumns - 1) / kSlabColumns * kSlabBytes;
  static constexpr int kBytes = kStages * (kKeyBytes + kValueBytes);
  static constexpr int kBarriersAt = Config::kWarps * kBytes;
  static_assert(kBarriersAt + Config::kWarps * kStages * 8 + kBoxAlignment == Config::kShared);

  __device__ __forceinline__ BoxRing(Operand<T> query, Boxes<T> key, Boxes<V> value)
      : query_(query), key_(key.map), value_(value.map) {}

  // Issues the first copies at once; the queries are loaded to registers meanwhile.
  template <typename Of>
  __device__ __forceinline__ float* start(const Of& of, Queries& queries, char* memory) {
    const unsigned address = ptx_shared_address(memory);
    const unsigned base = (address + (kBoxAlignment - 1)) / kBoxAlignment * kBoxAlignment;
    keys_ = base + of.warp * kBytes;
    values_ = keys_ + kStages * kKeyBytes;
    barriers_ = base + kBarriersAt + of.warp * (kStages * 8);
    if (ptx_elect()) {
      ptx_prefetch_map(key_);
      ptx_prefetch_map(value_);
#pragma unroll
      for (int i = 0; i < kStages; ++i) ptx_barrier_init(barriers_ + i * 8, 1);
      ptx_barrier_init_fence();
#pragma unroll 1
      for (int i = 0; i < kStages; ++i) {
        const int tile = of.first + i * Config::kWarps;
        if (tile < of.stop) load(of, tile, i);
      }
    }
    __syncwarp();
    load_query<kDepth, Config::kHalves>(
        queries.parts, query_.data, query_offsets(of.form, of.block, of.place.first_row),
        of.place.rows - of.place.first_row, Config::kDepth, query_.vector);
    return reinterpret_cast<float*>(memory + (base - address));
  }
  __device__ __forceinline__ void await_queries() const {}

  template <typename Of>
  __device__ __forceinline__ void acquire(const Of&, int) const {
    await_copies(barriers_ + stage_ * 8, parity_);
    __syncwarp();
  }
  __device__ __forceinline__ void scores(float (&s)[kKeys / 8][4], const Queries& queries) const {
    score_product<kDepth, kKeys>(s, queries.parts, keys_ + stage_ * kKeyBytes, T{});
  }
  __device__ __forceinline__ void values(float (&o)[kColumns / 8][4],
                                         const float (&p)[kKeys / 8][4]) const {
    value_product<kColumns, kKeys>(o, p, values_ + stage_ * kValueBytes, V{});
  }
  template <typename Of>
  __device__ __forceinline__ void release(const Of& of, int tile) {
    __syncwarp();
    const int next = tile + kStages * Config::kWarps;
    if (next < of.stop && ptx_elect()) load(of, next, stage_);
    if (++stage_ == kStages) {
      stage_ = 0;
      parity_ ^= 1;
    }
  }
  __device__ __forceinline__ void finish() const {}

 private:
  template <typename Of>
  __device__ __forceinline__ void load(const Of& of, int tile, int stage) const {
    const int from = static_cast<int>(of.key(tile));
    const unsigned full = barriers_ + stage * 8;
    ptx_barrier_expect(full, kKeyBytes + kValueBytes);
#pragma unroll
    for (int column = 0; column < kDepth; column += kSlabColumns) {
      of.form.copy_key(keys_ + stage * kKeyBytes + column / kSlabColumns * kSlabBytes, key_, full,
                       column, from, of.block);
    }
#pragma unroll
    for (int column = 0; column < kColumns; column += kSlabColumns) {
      of.form.copy_value(values_ + stage * kValueBytes + column / kSlabColumns * kSlabBytes, value_,
                         full, column, from, of.block);
    }
  }

  const Operand<T> query_;
  const TensorMap& key_;
  const TensorMap& value_;
  unsigned keys_, values_, barriers_;
  int stage_ = 0;
  unsigned parity_ = 0;
};

// `query.vector`: two columns from an even one on may be loaded together.
template <typename Config, typename Form, typename T, typename V>
__device__ __forceinline__ void split_kv(const Form& form, Operand<T> query, Boxes<T> key,
                                         Boxes<V> value, long long lines, long long keys,
                                         const SplitStates& out) {
  split_kv<Config>(form, BoxRing<Config, T, V>(query, key, value), lines, keys, out);
}
#endif
