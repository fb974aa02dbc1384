// How chains of operations read and write elements of other types (ChainType).
#pragma once

#include "cpu/simd/gemm_pack.h"
#include "cpu/simd/lanes.h"
#include "cpu/simd/vector_math.h"

// RF_INLINE of a lambda.
#define RF_INLINED __attribute__((always_inline))

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

template <int J>
struct Number {
  RF_INLINE constexpr operator int() const { return J; }
};

// Calls each(0), each(1), ... of constants, so that arrays of vectors are registers, also where
// paths meet.
template <int NV, class Each, int J = 0>
RF_INLINE void each_vector(const Each& each) {
  each(Number<J>{});
  if constexpr (J + 1 < NV) each_vector<NV, Each, J + 1>(each);
}

// NV whole vectors, or, for NV = 0, one with so many elements.
template <class T, int NV>
RF_INLINE void load_typed(Vector<T>* v, const char* from, ChainType type, int64_t count) {
  constexpr int W = VectorOf<T>::kWidth;
  if constexpr (sizeof(T) == 4) {
    switch (type) {
      case ChainType::UInt8:
        return each_vector<NV>([&](auto j) RF_INLINED {
          v[j] = float_lanes<uint8_t>(load_lanes<uint8_t>(from + j * W, count));
        });
      case ChainType::Int8:
        return each_vector<NV>([&](auto j) RF_INLINED {
          v[j] = float_lanes<int8_t>(load_lanes<int8_t>(from + j * W, count));
        });
      case ChainType::Int32:
        return each_vector<NV>([&](auto j) RF_INLINED {
          v[j] = float_lanes<int32_t>(load_lanes<int32_t>(from + j * W * 4, count));
        });
      case ChainType::Float16:
        return each_vector<NV>([&](auto j) RF_INLINED {
          v[j] = floats_of(load_lanes<uint16_t>(from + j * W * 2, count));
        });
      case ChainType::BFloat16:
        return each_vector<NV>([&](auto j) RF_INLINED {
          const auto bits = load_lanes<uint16_t>(from + j * W * 2, count);
          v[j] = float_of(__builtin_convertvector(bits, Lanes<int32_t>) << 16);
        });
      default:
        break;
    }
  }
  each_vector<NV>([&](auto j) RF_INLINED {
    v[j] = Vector<T>{};
    const size_t bytes = NV > 0 ? sizeof(Vector<T>) : static_cast<size_t>(count) * sizeof(T);
    __builtin_memcpy(&v[j], from + j * static_cast<int64_t>(sizeof(Vector<T>)), bytes);
  });
}

// Rounds toward zero. A float that int32 cannot represent gives the least int32.
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
        return each_vector<NV>([&](auto j) RF_INLINED {
          const auto bytes = __builtin_convertvector(integers_of(v[j]), Lanes<uint8_t>);
          store_lanes<uint8_t>(to + j * W, bytes, count);
        });
      case ChainType::Int32:
        return each_vector<NV>([&](auto j) RF_INLINED {
          store_lanes<int32_t>(to + j * W * 4, integers_of(v[j]), count);
        });
      case ChainType::Float16:
        return each_vector<NV>([&](auto j) RF_INLINED {
          store_lanes<uint16_t>(to + j * W * 2, halves_of(v[j]), count);
        });
      case ChainType::BFloat16:
        return each_vector<NV>([&](auto j) RF_INLINED {
          store_lanes<uint16_t>(to + j * W * 2, bfloats_of(v[j]), count);
        });
      default:
        break;
    }
  }
  each_vector<NV>([&](auto j) RF_INLINED {
    const size_t bytes = NV > 0 ? sizeof(Vector<T>) : static_cast<size_t>(count) * sizeof(T);
    __builtin_memcpy(to + j * static_cast<int64_t>(sizeof(Vector<T>)), &v[j], bytes);
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
