// Operands of the portable attention kernels: tiles in shared memory and their two products.
//
// A Config has
//   kDepth, kColumns  elements of a query and a key; columns of the values
//   kKeys             keys of a tile, a multiple of 16
//   kScores, kValues  how scores and weighted values are computed
#pragma once

#include "device/attention.cuh"
#include "device/attention_parts.cuh"

// Native: operands of one 16-bit type. Parts: of any types, by TF32. Scalar: fp32, by fused
// multiply-adds.
enum class Products { Native, Parts, Scalar };

// A tensor in memory. `vector`: 16-byte copies at multiples of 16 bytes are aligned.
template <typename T>
struct Operand {
  const T* data;
  bool vector;
};
template <typename T>
__device__ __forceinline__ Operand<T> operand(const T* data, bool vector) {
  return {data, vector};
}

// A size in whole steps of the tensor cores.
__host__ __device__ constexpr int padded(int size) { return (size + 15) / 16 * 16; }

// Lines of `Columns` elements each, `Pitch` elements apart; padding is zeros.
template <typename T, int Lines, int Columns, int Pitch>
struct MmaTile {
  static constexpr int kElements = Lines * Pitch;
  static constexpr int kBytes = kElements * static_cast<int>(sizeof(T));

  // at(line, column): an element's offset. Lines from `valid` on are zeros.
  template <int Threads, typename At>
  static __device__ __forceinline__ void load(T* tile, Operand<T> from, At at, long long valid,
                                              int thread) {
    constexpr int kPadding = (Pitch - padded(Columns)) * static_cast<int>(sizeof(T));
    load_tile<Lines, padded(Columns), Threads, kPadding>(tile, from.data, at, valid, Columns,
                                                         from.vector, thread);
  }
};

template <typename Config, typename Q, typename K, typename V>
struct MmaTiles {
  static constexpr int kDepth = padded(Config::kDepth), kColumns = padded(Config::kColumns);
  static constexpr int kKeys = Config::kKeys;
  static constexpr bool kPairs = Config::kScores == Products::Parts;

  template <int Lines>
  using Query =
      MmaTile<Q, Lines, Config::kDepth, kPairs ? pair_pitch_of<Q>(kDepth) : pitch_of<Q>(kDepth)>;
  using Key =
      MmaTile<K, kKeys, Config::kDepth, kPairs ? pair_pitch_of<K>(kDepth) : pitch_of<K>(kDepth)>;
  using Value = MmaTile<V, kKeys, Config::kColumns, pitch_of<V>(kColumns)>;
  // Of the buffer that redistributes a warp's weights among its lanes.
  static constexpr int kStagedBytes =
      Config::kValues == Products::Scalar ? 16 * pitch_of<float>(kKeys) * 4 : 0;

  // Loads the keys from `from` on and their values, by so many threads. A Form has the offsets of
  // elements, key(row, at, e) and value(row, at, column).
  template <int Threads, typename Form>
  static __device__ __forceinline__ void load(const Form& form, const typename Form::Row& row, K* k,
                                              Operand<K> key, V* v, Operand<V> value,
                                              long long from, long long keys, int thread) {
    Key::template load<Threads>(
        k, key, [&](long long line, long long e) { return form.key(row, from + line, e); },
        keys - from, thread);
    Value::template load<Threads>(
        v, value, [&](long long line, long long e) { return form.value(row, from + line, e); },
        keys - from, thread);
  }

  // s = q · kᵀ of a warp's 16 rows.
  static __device__ __forceinline__ void scores(float (&s)[kKeys / 8][4], const Q* q, const K* k) {
    if constexpr (Config::kScores == Products::Parts) {
      score_product_parts<kDepth, kKeys>(s, q, k);
    } else {
      score_product<kDepth, kKeys>(s, q, k);
    }
  }

  // o += p · v.
  static __device__ __forceinline__ void values(float (&o)[kColumns / 8][4],
                                                const float (&p)[kKeys / 8][4], const V* v,
                                                V* staged) {
    if constexpr (Config::kValues == Products::Parts) {
      value_product_parts<kColumns, kKeys>(o, p, v);
    } else {
      value_product<kColumns, kKeys>(o, p, v, staged);
    }
  }
};
