// Elements in the order of a ranking: NaN first, then by value, equal values by position.
#pragma once

#include "device/math.cuh"

// A number that is greater for an element that ranks earlier; equal for equal values, zeros of
// either sign and all NaN. Large: the largest value ranks first.
template <bool Large>
__device__ __forceinline__ unsigned rank_key(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);  // -0 becomes +0
  const unsigned ordered = bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
  return is_nan(x) ? 0xffffffffu : Large ? ordered : ~ordered;
}
template <bool Large>
__device__ __forceinline__ unsigned long long rank_key(double x) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(x + 0.0));
  const unsigned long long ordered = bits ^ (bits >> 63 ? ~0ull : 1ull << 63);
  return is_nan(x) ? ~0ull : Large ? ordered : ~ordered;
}
template <bool Large>
__device__ __forceinline__ unsigned rank_key(unsigned x) {
  return Large ? x : ~x;
}
template <bool Large>
__device__ __forceinline__ unsigned rank_key(int x) {
  return rank_key<Large>(static_cast<unsigned>(x) ^ 0x80000000u);
}
template <bool Large>
__device__ __forceinline__ unsigned long long rank_key(unsigned long long x) {
  return Large ? x : ~x;
}
template <bool Large>
__device__ __forceinline__ unsigned long long rank_key(long long x) {
  return rank_key<Large>(static_cast<unsigned long long>(x) ^ 1ull << 63);
}

constexpr unsigned kNowhere = 0xffffffffu;  // not a position

// An element's key and its position in the row. Two elements are never equal.
template <typename Key>
struct RankEntry;

template <>
struct RankEntry<unsigned> {
  using Key = unsigned;
  unsigned long long bits;  // the key, above the complement of the position

  static __device__ __forceinline__ RankEntry of(unsigned key, unsigned at) {
    return {static_cast<unsigned long long>(key) << 32 | ~at};
  }
  static __device__ __forceinline__ RankEntry none() { return {0}; }
  __device__ __forceinline__ unsigned key() const { return static_cast<unsigned>(bits >> 32); }
  __device__ __forceinline__ unsigned position() const { return ~static_cast<unsigned>(bits); }
  __device__ __forceinline__ bool before(const RankEntry& other) const { return bits > other.bits; }
  // The bound after this entry: this entry and those before it are before the result. Not for
  // none().
  __device__ __forceinline__ RankEntry behind() const { return {bits - 1}; }
};

template <>
struct RankEntry<unsigned long long> {
  using Key = unsigned long long;
  unsigned long long word, complement;

  static __device__ __forceinline__ RankEntry of(unsigned long long key, unsigned at) {
    return {key, ~at};
  }
  static __device__ __forceinline__ RankEntry none() { return {0, 0}; }
  __device__ __forceinline__ unsigned long long key() const { return word; }
  __device__ __forceinline__ unsigned position() const {
    return ~static_cast<unsigned>(complement);
  }
  __device__ __forceinline__ bool before(const RankEntry& other) const {
    return word != other.word ? word > other.word : complement > other.complement;
  }
  // A position below kNowhere has a complement above 0.
  __device__ __forceinline__ RankEntry behind() const { return {word, complement - 1}; }
};

__device__ __forceinline__ unsigned warp_most(unsigned value) {
  return __reduce_max_sync(0xffffffffu, value);
}
__device__ __forceinline__ unsigned long long warp_most(unsigned long long value) {
  const auto high = static_cast<unsigned>(value >> 32);
  const unsigned most = warp_most(high);
  const unsigned low = warp_most(high == most ? static_cast<unsigned>(value) : 0u);
  return static_cast<unsigned long long>(most) << 32 | low;
}

// Writes the positions of the first `count` elements of a warp, in order, to `to`, visible to every
// lane after the next __syncwarp. Each lane has Elements keys, which exist where `there` has the
// bit; element i is at `position(i)` of the row, which increases with i.
template <int Elements, typename Key, typename Position>
__device__ __forceinline__ void rank_in_warp(const Key (&keys)[Elements], unsigned there,
                                             Position position, int count, unsigned* to) {
  static_assert(Elements <= 32);
  Key key{};
  int slot = -1;
  const auto find = [&] {
    key = Key(0);
    slot = -1;
#pragma unroll
    for (int i = 0; i < Elements; ++i) {
      const bool better = (there >> i & 1u) != 0 && (slot < 0 || keys[i] > key);
      key = better ? keys[i] : key;
      slot = better ? i : slot;
    }
  };
  find();
#pragma unroll 1
  for (int rank = 0; rank < count; ++rank) {
    const Key most = warp_most(key);
    const unsigned own = slot >= 0 && key == most ? position(slot) : kNowhere;
    const unsigned first = __reduce_min_sync(0xffffffffu, own);
    if ((threadIdx.x & 31) == 0) to[rank] = first;
    if (own == first && slot >= 0) {
      there &= ~(1u << slot);
      find();
    }
  }
}

// The entry of the lane whose number differs in the bits `mask`.
__device__ __forceinline__ RankEntry<unsigned> from_lane(const RankEntry<unsigned>& entry,
                                                         int mask) {
  return {__shfl_xor_sync(0xffffffffu, entry.bits, mask)};
}
__device__ __forceinline__ RankEntry<unsigned long long> from_lane(
    const RankEntry<unsigned long long>& entry, int mask) {
  return {__shfl_xor_sync(0xffffffffu, entry.word, mask),
          __shfl_xor_sync(0xffffffffu, entry.complement, mask)};
}

// The slot of a lane's earliest element; -1 where there is none. Pairs are compared level by level:
// a lane has many elements.
template <int Elements, typename Key>
__device__ __forceinline__ int first_slot(const Key (&keys)[Elements], unsigned there, Key& first) {
  Key key[Elements];
  int slot[Elements];
#pragma unroll
  for (int i = 0; i < Elements; ++i) {
    key[i] = keys[i];
    slot[i] = there >> i & 1u ? i : -1;
  }
#pragma unroll
  for (int width = 1; width < Elements; width *= 2) {
#pragma unroll
    for (int i = 0; i + width < Elements; i += 2 * width) {
      const bool later = slot[i + width] >= 0 && (slot[i] < 0 || key[i + width] > key[i]);
      key[i] = later ? key[i + width] : key[i];
      slot[i] = later ? slot[i + width] : slot[i];
    }
  }
  first = key[0];
  return slot[0];
}

// The same for rows of Lanes adjacent lanes, fewer than a warp's; visible to these lanes.
template <int Lanes, int Elements, typename Key, typename Position>
__device__ __forceinline__ void rank_in_lanes(const Key (&keys)[Elements], unsigned there,
                                              Position position, int count, unsigned* to) {
  static_assert(Elements <= 32 && Lanes < 32);
  using Entry = RankEntry<Key>;
  int slot = -1;
  const auto find = [&] {
    Key key;
    slot = first_slot(keys, there, key);
    return slot < 0 ? Entry::none() : Entry::of(key, position(slot));
  };
  Entry own = find();
#pragma unroll 1
  for (int rank = 0; rank < count; ++rank) {
    Entry first = own;
#pragma unroll
    for (int step = Lanes / 2; step > 0; step /= 2) {
      const Entry other = from_lane(first, step);
      if (other.before(first)) first = other;
    }
    if (threadIdx.x % Lanes == 0) to[rank] = first.position();
    if (slot >= 0 && own.position() == first.position()) {
      there &= ~(1u << slot);
      own = find();
    }
  }
}
