// Element types, conversions and vector access. Values are computed as float, double, bool,
// unsigned long long (uint64) or long long (all other integers); memory has the tensor's own type.
#pragma once

#include "device/ptx.cuh"

struct half_t {
  unsigned short bits;
};
struct bfloat_t {
  unsigned short bits;
};

#define INFINITY_F __int_as_float(0x7f800000)
#define NAN_F __int_as_float(0x7fffffff)

template <typename T>
struct Element {
  using Value = long long;
  static __device__ __forceinline__ Value get(T x) { return static_cast<long long>(x); }
  static __device__ __forceinline__ T put(Value x) { return static_cast<T>(x); }
};
template <>
struct Element<unsigned long long> {
  using Value = unsigned long long;
  static __device__ __forceinline__ Value get(Value x) { return x; }
  static __device__ __forceinline__ Value put(Value x) { return x; }
};
template <>
struct Element<float> {
  using Value = float;
  static __device__ __forceinline__ float get(float x) { return x; }
  static __device__ __forceinline__ float put(float x) { return x; }
};
template <>
struct Element<double> {
  using Value = double;
  static __device__ __forceinline__ double get(double x) { return x; }
  static __device__ __forceinline__ double put(double x) { return x; }
};
template <>
struct Element<bool> {
  using Value = bool;
  static __device__ __forceinline__ bool get(bool x) { return x; }
  static __device__ __forceinline__ bool put(bool x) { return x; }
};
template <>
struct Element<half_t> {
  using Value = float;
  static __device__ __forceinline__ float get(half_t x) { return ptx_half_to_float(x.bits); }
  static __device__ __forceinline__ half_t put(float x) { return {ptx_float_to_half(x)}; }
};
template <>
struct Element<bfloat_t> {
  using Value = float;
  static __device__ __forceinline__ float get(bfloat_t x) {
    return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
  }
  static __device__ __forceinline__ bfloat_t put(float x) { return {ptx_float_to_bfloat(x)}; }
};

template <typename T>
using ValueOf = typename Element<T>::Value;

template <typename T>
__device__ __forceinline__ ValueOf<T> load(const T* pointer, long long offset) {
  return Element<T>::get(pointer[offset]);
}

template <typename T>
__device__ __forceinline__ void store(T* pointer, long long offset, ValueOf<T> value) {
  pointer[offset] = Element<T>::put(value);
}

template <typename T>
__device__ __forceinline__ bool aligned(const T* pointer) {
  return (reinterpret_cast<unsigned long long>(pointer) & 15) == 0;
}

// An access of up to 16 bytes.
template <int Bytes>
struct WordOf {
  using Word = uint4;
};
template <>
struct WordOf<8> {
  using Word = uint2;
};
template <>
struct WordOf<4> {
  using Word = unsigned;
};
template <>
struct WordOf<2> {
  using Word = unsigned short;
};
template <>
struct WordOf<1> {
  using Word = unsigned char;
};

// `N` elements of type T in machine words of up to 16 bytes.
template <typename T, int N>
union Pack {
  static constexpr int kBytes = N * static_cast<int>(sizeof(T));
  using Word = typename WordOf<(kBytes < 16 ? kBytes : 16)>::Word;
  static constexpr int kWords = kBytes / static_cast<int>(sizeof(Word));
  static_assert(kWords * sizeof(Word) == kBytes, "groups are powers of two");
  T elements[N];
  Word words[kWords];
  __device__ __forceinline__ Pack() {}
};

// change(value) for every value of an array.
template <int N, typename T, typename Change>
__device__ __forceinline__ void each_value(T (&values)[N], const Change& change) {
#pragma unroll
  for (int i = 0; i < N; ++i) change(values[i]);
}

// Loads V consecutive elements from `offset`, of which the first `valid` exist; the others become
// 0. `vector`: the address and every multiple of V after it are aligned, and valid is 0 or >= V.
template <int V, typename T>
__device__ __forceinline__ void load_group(ValueOf<T> (&to)[V], const T* pointer, long long offset,
                                           long long valid, bool vector) {
  using Value = ValueOf<T>;
  if (vector) {
    Pack<T, V> pack;
    if (valid > 0) {
#pragma unroll
      for (int w = 0; w < Pack<T, V>::kWords; ++w) {
        pack.words[w] = reinterpret_cast<const typename Pack<T, V>::Word*>(pointer + offset)[w];
      }
#pragma unroll
      for (int v = 0; v < V; ++v) to[v] = Element<T>::get(pack.elements[v]);
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v) to[v] = Value(0);
    }
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      to[v] = v < valid ? Element<T>::get(pointer[offset + v]) : Value(0);
    }
  }
}

template <int V, typename T>
__device__ __forceinline__ void store_group(T* pointer, long long offset,
                                            const ValueOf<T> (&from)[V], long long valid,
                                            bool vector) {
  if (vector) {
    if (valid <= 0) return;
    Pack<T, V> pack;
#pragma unroll
    for (int v = 0; v < V; ++v) pack.elements[v] = Element<T>::put(from[v]);
#pragma unroll
    for (int w = 0; w < Pack<T, V>::kWords; ++w) {
      reinterpret_cast<typename Pack<T, V>::Word*>(pointer + offset)[w] = pack.words[w];
    }
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      if (v < valid) pointer[offset + v] = Element<T>::put(from[v]);
    }
  }
}
