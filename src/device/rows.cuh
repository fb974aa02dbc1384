// Groups of consecutive elements of a row as machine words in registers and shared memory, loaded
// and stored 16 bytes at a time and converted at their use.
#pragma once

#include "device/ptx.cuh"
#include "device/types.cuh"

// The number of words of N elements of T.
template <typename T, int N>
struct Words {
  static constexpr int value = (N * static_cast<int>(sizeof(T)) + 3) / 4;
};

template <typename T>
__device__ __forceinline__ T from_bits(unsigned long long bits) {
  union {
    unsigned long long whole;
    T value;
  } u;
  u.whole = bits;
  return u.value;
}
template <typename T>
__device__ __forceinline__ unsigned long long to_bits(T value) {
  union {
    unsigned long long whole;
    T value;
  } u;
  u.whole = 0;
  u.value = value;
  return u.whole;
}

// Element i of a group.
template <typename T, int W>
__device__ __forceinline__ ValueOf<T> pick(const unsigned (&words)[W], int i) {
  if constexpr (sizeof(T) == 8) {
    return Element<T>::get(
        from_bits<T>(words[2 * i] | static_cast<unsigned long long>(words[2 * i + 1]) << 32));
  } else {
    constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
    const unsigned word = words[i / kPerWord] >> (i % kPerWord * 8 * static_cast<int>(sizeof(T)));
    if constexpr (sizeof(T) == 4) return Element<T>::get(from_bits<T>(word));
    if constexpr (sizeof(T) == 2) return Element<T>::get(from_bits<T>(word & 0xffffu));
    return Element<T>::get(from_bits<T>(word & 0xffu));
  }
}

template <typename T, int W>
__device__ __forceinline__ void place(unsigned (&words)[W], int i, T element) {
  const unsigned long long bits = to_bits(element);
  if constexpr (sizeof(T) == 8) {
    words[2 * i] = static_cast<unsigned>(bits);
    words[2 * i + 1] = static_cast<unsigned>(bits >> 32);
  } else {
    constexpr int kPerWord = 4 / static_cast<int>(sizeof(T));
    const int shift = i % kPerWord * 8 * static_cast<int>(sizeof(T));
    words[i / kPerWord] |= static_cast<unsigned>(bits) << shift;
  }
}

template <int Bytes>
__device__ __forceinline__ bool aligned_to(const void* pointer) {
  return (reinterpret_cast<unsigned long long>(pointer) & ((Bytes < 16 ? Bytes : 16) - 1)) == 0;
}

// A group of N elements, element(i) where exists(i); the others become zero bits.
template <int N, int W, typename Exists, typename Element>
__device__ __forceinline__ void gather_words(unsigned (&words)[W], const Exists& exists,
                                             const Element& element) {
#pragma unroll
  for (int w = 0; w < W; ++w) words[w] = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if (exists(i)) place(words, i, element(i));
  }
}

// The elements from `from` on, those at [low, valid).
template <int N, int W, typename T>
__device__ __forceinline__ void gather_words(unsigned (&words)[W], const T* from, int low,
                                             int valid) {
  gather_words<N>(
      words, [&](int i) { return i >= low && i < valid; }, [&](int i) { return from[i]; });
}
// A group of N equal elements.
template <int N, typename T, int W>
__device__ __forceinline__ void repeat(unsigned (&words)[W], T element) {
  gather_words<N>(
      words, [](int) { return true; }, [&](int) { return element; });
}

// Elements between the last address aligned to a group of N and `pointer`, if at most `free`, the
// free elements of a tile; else 0.
template <int N, typename T>
__device__ __forceinline__ int misalignment(const T* pointer, int free) {
  const int shift =
      static_cast<int>(reinterpret_cast<unsigned long long>(pointer) / sizeof(T) & (N - 1));
  return shift <= free ? shift : 0;
}

// Loads N elements from an address aligned to the group, or to 16 bytes. Once: no other block reads
// the bytes, so they are not allocated in L1.
template <typename T, int N, bool Once, int W>
__device__ __forceinline__ void load_aligned(unsigned (&words)[W], const T* from) {
  if constexpr (N * sizeof(T) % 4 != 0) {
    gather_words<N>(words, from, 0, N);
  } else if constexpr (W % 4 == 0) {
#pragma unroll
    for (int w = 0; w < W; w += 4) {
      const uint4 quad = Once ? ptx_load_once(reinterpret_cast<const uint4*>(from) + w / 4)
                              : reinterpret_cast<const uint4*>(from)[w / 4];
      words[w] = quad.x;
      words[w + 1] = quad.y;
      words[w + 2] = quad.z;
      words[w + 3] = quad.w;
    }
  } else if constexpr (W % 2 == 0) {
#pragma unroll
    for (int w = 0; w < W; w += 2) {
      const uint2 pair = reinterpret_cast<const uint2*>(from)[w / 2];
      words[w] = pair.x;
      words[w + 1] = pair.y;
    }
  } else {
#pragma unroll
    for (int w = 0; w < W; ++w) words[w] = reinterpret_cast<const unsigned*>(from)[w];
  }
}

// The same from any address, by the aligned 16-byte vectors around the group.
template <typename T, int N, int W>
__device__ __forceinline__ void load_unaligned(unsigned (&words)[W], const T* from) {
  const unsigned long long address = reinterpret_cast<unsigned long long>(from);
  const uint4* quads = reinterpret_cast<const uint4*>(address & ~15ull);
  unsigned raw[W + 4];
#pragma unroll
  for (int w = 0; w < W + 4; w += 4) {
    const uint4 quad = quads[w / 4];
    raw[w] = quad.x;
    raw[w + 1] = quad.y;
    raw[w + 2] = quad.z;
    raw[w + 3] = quad.w;
  }
#pragma unroll
  for (int w = 0; w < W + 2; ++w) raw[w] = address & 8 ? raw[w + 2] : raw[w];
#pragma unroll
  for (int w = 0; w < W + 1; ++w) raw[w] = address & 4 ? raw[w + 1] : raw[w];
  const int shift = static_cast<int>(address & 3) * 8;
#pragma unroll
  for (int w = 0; w < W; ++w) words[w] = __funnelshift_r(raw[w], raw[w + 1], shift);
}

// Loads N elements from `from`, of which those at [low, valid) are used; the others have any bits.
// Vector: all are used, and the address is aligned. The tensor is [begin, end); null: what of it is
// around those used is not known. One vector for all lanes is faster than the elements of a few.
template <typename T, int N, bool Vector, bool Once, int W>
__device__ __forceinline__ void load_words(unsigned (&words)[W], const T* from, int low, int valid,
                                           const T* begin = nullptr, const T* end = nullptr) {
  constexpr int kBytes = N * static_cast<int>(sizeof(T)), kPiece = 16 / static_cast<int>(sizeof(T));
  const auto exist = [&](int before, int after) {
    return end != nullptr ? from - before >= begin && from + after <= end
                          : low <= -before && valid >= after;
  };
  if (Vector || (exist(0, N) && aligned_to<kBytes>(from))) {
    return load_aligned<T, N, Once>(words, from);
  }
  bool inside = false;
  if constexpr (W % 4 == 0) {
    inside = exist(kPiece, N + kPiece);
    if (inside) load_unaligned<T, N>(words, from);
  }
  if (!inside) gather_words<N>(words, from, low, valid);
}

template <int N, int W>
__device__ __forceinline__ void pack_words(unsigned (&words)[W], const float (&values)[N],
                                           const half_t*) {
#pragma unroll
  for (int w = 0; w < W; ++w) words[w] = ptx_pack_half(values[2 * w], values[2 * w + 1]);
}
template <int N, int W>
__device__ __forceinline__ void pack_words(unsigned (&words)[W], const float (&values)[N],
                                           const bfloat_t*) {
#pragma unroll
  for (int w = 0; w < W; ++w) words[w] = ptx_pack_bfloat(values[2 * w], values[2 * w + 1]);
}
template <int N, int W, typename T>
__device__ __forceinline__ void pack_words(unsigned (&words)[W], const ValueOf<T> (&values)[N],
                                           const T*) {
#pragma unroll
  for (int w = 0; w < W; ++w) words[w] = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) place(words, i, Element<T>::put(values[i]));
}

// Stores N values whose bytes are whole words.
template <int N, typename T>
__device__ __forceinline__ void store_vectors(T* to, const ValueOf<T> (&values)[N]) {
  constexpr int W = Words<T, N>::value;
  unsigned words[W];
  pack_words<N>(words, values, static_cast<const T*>(to));
  if constexpr (W % 4 == 0) {
#pragma unroll
    for (int w = 0; w < W; w += 4) {
      reinterpret_cast<uint4*>(to)[w / 4] =
          make_uint4(words[w], words[w + 1], words[w + 2], words[w + 3]);
    }
  } else if constexpr (W % 2 == 0) {
#pragma unroll
    for (int w = 0; w < W; w += 2) {
      reinterpret_cast<uint2*>(to)[w / 2] = make_uint2(words[w], words[w + 1]);
    }
  } else {
#pragma unroll
    for (int w = 0; w < W; ++w) reinterpret_cast<unsigned*>(to)[w] = words[w];
  }
}

// Stores N values to an address aligned to the group, or to 16 bytes.
template <int N, typename T>
__device__ __forceinline__ void store_aligned(T* to, const ValueOf<T> (&values)[N]) {
  if constexpr (N * sizeof(T) % 4 == 0) {
    store_vectors<N>(to, values);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = Element<T>::put(values[i]);
  }
}

// Stores those of N values that are at [low, valid); Vector as above.
template <int N, bool Vector, typename T>
__device__ __forceinline__ void store_words(T* to, const ValueOf<T> (&values)[N], int low,
                                            int valid) {
  constexpr int kBytes = N * static_cast<int>(sizeof(T));
  if (Vector || (low <= 0 && valid >= N && aligned_to<kBytes>(to))) {
    store_aligned<N>(to, values);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (i >= low && i < valid) to[i] = Element<T>::put(values[i]);
    }
  }
}

// Stores a group to its slot in shared memory, whose 16-byte vectors are `stride` vectors apart. A
// group of one or two words takes a vector as well.
template <int W>
__device__ __forceinline__ void store_shared(const unsigned (&words)[W], uint4* slot, int stride) {
  if constexpr (W < 4) {
#pragma unroll
    for (int w = 0; w < W; ++w) reinterpret_cast<unsigned*>(slot)[w] = words[w];
  } else {
#pragma unroll
    for (int w = 0; w < W; w += 4) {
      slot[w / 4 * stride] = make_uint4(words[w], words[w + 1], words[w + 2], words[w + 3]);
    }
  }
}

// The same from memory, asynchronously where it can; each thread reads only its own slots. Passing:
// the bytes are the first to be evicted from L2, in favour of data that other rows share.
template <typename T, int N, bool Vector, bool Passing, int W>
__device__ __forceinline__ void copy_to_shared(uint4* slot, int stride, const T* from, int low,
                                               int valid) {
  static_assert(W % 4 == 0 || W == 1 || W == 2);
  if (Vector || (low <= 0 && valid >= N && aligned_to<W * 4>(from))) {
    if constexpr (W < 4) {
      ptx_copy_async_narrow<W * 4>(slot, from, W * 4);
    } else {
#pragma unroll
      for (int w = 0; w < W / 4; ++w) {
        const uint4* piece = reinterpret_cast<const uint4*>(from) + w;
        if constexpr (Passing) {
          ptx_copy_async_passing(slot + w * stride, piece);
        } else {
          ptx_copy_async(slot + w * stride, piece, true);
        }
      }
    }
  } else {
    unsigned words[W];
    gather_words<N>(words, from, low, valid);
    store_shared(words, slot, stride);
  }
}
// Loads a group from its slot.
template <int W>
__device__ __forceinline__ void load_shared(unsigned (&words)[W], const uint4* slot, int stride) {
  if constexpr (W < 4) {
#pragma unroll
    for (int w = 0; w < W; ++w) words[w] = reinterpret_cast<const unsigned*>(slot)[w];
  } else {
#pragma unroll
    for (int w = 0; w < W; w += 4) {
      const uint4 quad = slot[w / 4 * stride];
      words[w] = quad.x;
      words[w + 1] = quad.y;
      words[w + 2] = quad.z;
      words[w + 3] = quad.w;
    }
  }
}

// Loads the lanes' consecutive groups of W words from `from` in coalesced order: each lane gets
// every 32nd vector of 16 bytes.
template <typename T, int W>
__device__ __forceinline__ void load_coalesced(unsigned (&words)[W], const T* from) {
  static_assert(W % 4 == 0);
#pragma unroll
  for (int w = 0; w < W; w += 4) {
    const uint4 quad =
        ptx_load_once(reinterpret_cast<const uint4*>(from) + w * 8 + (threadIdx.x & 31));
    words[w] = quad.x;
    words[w + 1] = quad.y;
    words[w + 2] = quad.z;
    words[w + 3] = quad.w;
  }
}
// Transposes such groups through `staging`, 8 · W vectors in shared memory, so that each lane gets
// its own group.
template <int W>
__device__ __forceinline__ void transpose_lanes(unsigned (&words)[W], uint4* staging) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int w = 0; w < W; w += 4) {
    staging[w * 8 + lane] = make_uint4(words[w], words[w + 1], words[w + 2], words[w + 3]);
  }
  __syncwarp();
  load_shared(words, staging + lane * (W / 4), 1);
  __syncwarp();
}
