// How chains of operations read and write elements of other types (ChainType).
#pragma once

#include <utility>

#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vector_math.h"

// As calls, they would have the vectors that they use in memory.
#define RF_INLINE_LAMBDA __attribute__((always_inline))

namespace redfuser::cpu::RF_ISA {

template <class T>
RF_INLINE constexpr int64_t bytes_of(ChainType type) {
  switch (type) {
    case ChainType::UInt8:
    case ChainType::Int8:
      return 1;
    case ChainType::Float16:
    case ChainType::BFloat16:
      return 2;
    case ChainType::Int32:
      return 4;
    default:
      return sizeof(T);
  }
}

// Calls each(j) for every vector, where j is a constant: arrays of vectors stay in registers, also
// from one step of a chain to the next, which they would not with the index of a loop.
template <int... J, class Each>
RF_INLINE void each_index(std::integer_sequence<int, J...>, const Each& each) {
  (each(std::integral_constant<int, J>{}), ...);
}
template <int NV, class Each>
RF_INLINE void each_vector(const Each& each) {
  each_index(std::make_integer_sequence<int, (NV > 0 ? NV : 1)>{}, each);
}

// NV whole vectors, or, for NV = 0, one with so many elements.
template <class T, int NV>
RF_INLINE void load_typed(Vector<T>* v, const char* from, ChainType type, int64_t count) {
  constexpr int W = VectorOf<T>::kWidth;
  if constexpr (sizeof(T) == 4) {
    switch (type) {
      case ChainType::UInt8:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          v[j] = float_lanes<uint8_t>(load_lanes<uint8_t>(from + j * W, count));
        });
      case ChainType::Int8:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          v[j] = float_lanes<int8_t>(load_lanes<int8_t>(from + j * W, count));
        });
      case ChainType::Int32:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          v[j] = float_lanes<int32_t>(load_lanes<int32_t>(from + j * W * 4, count));
        });
      case ChainType::Float16:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          v[j] = floats_of(load_lanes<uint16_t>(from + j * W * 2, count));
        });
      case ChainType::BFloat16:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          const auto bits = load_lanes<uint16_t>(from + j * W * 2, count);
          v[j] = float_of(__builtin_convertvector(bits, Lanes<int32_t>) << 16);
        });
      default:
        break;
    }
  }
  each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
    const T* at = reinterpret_cast<const T*>(from) + j * W;
    if constexpr (NV > 0) {
      v[j] = load_vector(at);
    } else {
      v[j] = load_part(at, count);
    }
  });
}

// Towards zero; the least of int32 where it has none.
RF_INLINE Lanes<int32_t> integers_of(Vector<float> x) {
  const Vector<float> least = -2147483648.0f - Vector<float>{};
  const Vector<float> y = (x >= least) & (x < -least) ? x : least;
  return __builtin_convertvector(y, Lanes<int32_t>);
}

RF_INLINE Lanes<uint16_t> bfloats_of(Vector<float> x) {
  const Lanes<uint32_t> bits = reinterpret_cast<Lanes<uint32_t>>(x);
  const Lanes<uint32_t> rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Lanes<uint32_t> nan = (bits >> 16) | 0x40;
  return __builtin_convertvector((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded, Lanes<uint16_t>);
}

template <class T, int NV>
RF_INLINE void store_typed(char* to, const Vector<T>* v, ChainType type, int64_t count) {
  constexpr int W = VectorOf<T>::kWidth;
  if constexpr (sizeof(T) == 4) {
    switch (type) {
      case ChainType::UInt8:
      case ChainType::Int8:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          const auto bytes = __builtin_convertvector(integers_of(v[j]), Lanes<uint8_t>);
          store_lanes<uint8_t>(to + j * W, bytes, count);
        });
      case ChainType::Int32:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          store_lanes<int32_t>(to + j * W * 4, integers_of(v[j]), count);
        });
      case ChainType::Float16:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          store_lanes<uint16_t>(to + j * W * 2, halves_of(v[j]), count);
        });
      case ChainType::BFloat16:
        return each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
          store_lanes<uint16_t>(to + j * W * 2, bfloats_of(v[j]), count);
        });
      default:
        break;
    }
  }
  each_vector<NV>([&](auto j) RF_INLINE_LAMBDA {
    T* at = reinterpret_cast<T*>(to) + j * W;
    if constexpr (NV > 0) {
      store_vector(at, v[j]);
    } else {
      store_part(at, v[j], count);
    }
  });
}

template <class V>
RF_INLINE V magnitude(V x) {
  using Bits = decltype(x < x);
  const V sign = -V{};
  return reinterpret_cast<V>(reinterpret_cast<Bits>(x) & ~reinterpret_cast<Bits>(sign));
}

// To the nearest integer, ties to even.
template <class T>
RF_INLINE Vector<T> rounded(Vector<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return _mm512_maskz_roundscale_ps(0xffff, x, 8);
  if constexpr (sizeof(T) == 8) return _mm512_maskz_roundscale_pd(0xff, x, 8);
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) return _mm256_round_ps(x, 8);
  if constexpr (sizeof(T) == 8) return _mm256_round_pd(x, 8);
#else
  for (int l = 0; l < VectorOf<T>::kWidth; ++l) x[l] = __builtin_rint(x[l]);
  return x;
#endif
}

}  // namespace redfuser::cpu::RF_ISA
