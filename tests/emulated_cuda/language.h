// CUDA C++ as the templates of src/device use it, for a host compiler. A kernel's source follows.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulated_cuda/emulated.h"

namespace emulated {

inline Services host;
inline thread_local Thread* current = nullptr;
// Static shared memory is addressed relative to this.
inline thread_local char anchor = 0;

template <class... Arguments, size_t... Is>
void call(void (*kernel)(Arguments...), void** arguments, std::index_sequence<Is...>) {
  kernel(*static_cast<std::remove_reference_t<Arguments>*>(arguments[Is])...);
}
template <class... Arguments>
void call(void (*kernel)(Arguments...), void** arguments) {
  call(kernel, arguments, std::index_sequence_for<Arguments...>{});
}
template <class... Arguments>
int sizes(void (*)(Arguments...), size_t* bytes) {
  ((*bytes++ = sizeof(std::remove_reference_t<Arguments>)), ...);
  return sizeof...(Arguments);
}

}  // namespace emulated

#define __device__
#define __host__
#define __global__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static thread_local

#define threadIdx (emulated::current->index)
#define blockIdx (emulated::current->block)
#define blockDim (emulated::current->block_size)
#define gridDim (emulated::current->grid_size)

struct uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) longlong2 {
  long long x, y;
};
inline longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmin(T(a), T(b));
  return T(a) < T(b) ? T(a) : T(b);
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  if constexpr (std::is_floating_point_v<T>) return std::fmax(T(a), T(b));
  return T(a) > T(b) ? T(a) : T(b);
}
using std::isfinite, std::isinf, std::isnan;
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }

inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned pick = selector >> 4 * i & 0xf;
    unsigned byte = static_cast<unsigned>(bytes >> 8 * (pick & 7)) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
}
template <class A, class B, class Sum>
Sum dot_of_bytes(unsigned a, unsigned b, Sum sum) {
  for (int i = 0; i < 32; i += 8) {
    sum = static_cast<Sum>(static_cast<unsigned>(sum) +
                           static_cast<unsigned>(static_cast<int>(static_cast<A>(a >> i)) *
                                                 static_cast<int>(static_cast<B>(b >> i))));
  }
  return sum;
}
inline int __dp4a(int a, int b, int c) { return dot_of_bytes<int8_t, int8_t>(a, b, c); }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  return dot_of_bytes<uint8_t, uint8_t>(a, b, c);
}

// Threads of a block.
inline void __syncthreads() { emulated::host.meet(0, 0, false, true); }
inline int __syncthreads_count(int vote) {
  return static_cast<int>(emulated::host.meet(0, 0, vote != 0, true));
}
inline int __syncthreads_or(int vote) { return __syncthreads_count(vote) > 0; }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

// Threads of a warp.
inline void __syncwarp(unsigned mask = 0xffffffff) {
  emulated::host.with_warp(mask, nullptr, nullptr);
}
template <class T>
struct Shuffle {
  T value, result;
  int source;
};
template <class T>
T shuffled(unsigned mask, T value, int source) {
  Shuffle<T> own{value, value, source};
  emulated::host.with_warp(mask, &own, [](void** operands, int count) {
    for (int i = 0; i < count; ++i) {
      if (operands[i] == nullptr) continue;
      auto& to = *static_cast<Shuffle<T>*>(operands[i]);
      const int from = to.source & 31;
      if (operands[from] != nullptr) to.result = static_cast<Shuffle<T>*>(operands[from])->value;
    }
  });
  return own.result;
}
inline int lane_of_warp() { return static_cast<int>(emulated::current->number & 31); }
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  return shuffled(mask, value, (lane_of_warp() & -width) + (source & (width - 1)));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const int lane = lane_of_warp(), from = lane ^ bits;
  return shuffled(mask, value, from < (lane & -width) + width ? from : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int lane = lane_of_warp(), from = lane - static_cast<int>(by);
  return shuffled(mask, value, from >= (lane & -width) ? from : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const int lane = lane_of_warp(), from = lane + static_cast<int>(by);
  return shuffled(mask, value, from < (lane & -width) + width ? from : lane);
}
template <class T, class Join>
T joined(unsigned mask, T value, Join) {
  Shuffle<T> own{value, value, 0};
  emulated::host.with_warp(mask, &own, [](void** operands, int count) {
    bool any = false;
    T all{};
    for (int i = 0; i < count; ++i) {
      if (operands[i] == nullptr) continue;
      const T next = static_cast<Shuffle<T>*>(operands[i])->value;
      all = any ? Join{}(all, next) : next;
      any = true;
    }
    for (int i = 0; i < count; ++i) {
      if (operands[i] != nullptr) static_cast<Shuffle<T>*>(operands[i])->result = all;
    }
  });
  return own.result;
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  return joined(mask, vote != 0 ? 1u << lane_of_warp() : 0u,
                [](unsigned a, unsigned b) { return a | b; });
}
inline int __all_sync(unsigned mask, int vote) {
  return joined(mask, vote != 0 ? 1 : 0, [](int a, int b) { return a & b; });
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0; }
template <class T>
T __reduce_add_sync(unsigned mask, T value) {
  return joined(mask, value, [](T a, T b) { return a + b; });
}
template <class T>
T __reduce_min_sync(unsigned mask, T value) {
  return joined(mask, value, [](T a, T b) { return a < b ? a : b; });
}
template <class T>
T __reduce_max_sync(unsigned mask, T value) {
  return joined(mask, value, [](T a, T b) { return a > b ? a : b; });
}

// Memory that other blocks see.
template <class T, class Change>
T changed(T* to, Change change) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  auto* bits = reinterpret_cast<Bits*>(to);
  Bits before = __atomic_load_n(bits, __ATOMIC_SEQ_CST);
  for (;;) {
    const Bits after = std::bit_cast<Bits>(change(std::bit_cast<T>(before)));
    if (__atomic_compare_exchange_n(bits, &before, after, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
      return std::bit_cast<T>(before);
    }
  }
}
template <class T, class U>
T atomicAdd(T* to, U value) {
  return changed(to, [&](T before) { return static_cast<T>(before + static_cast<T>(value)); });
}
template <class T, class U>
T atomicExch(T* to, U value) {
  return changed(to, [&](T) { return static_cast<T>(value); });
}
template <class T, class U>
T atomicMax(T* to, U value) {
  return changed(to, [&](T before) { return std::max(before, static_cast<T>(value)); });
}
template <class T, class U>
T atomicMin(T* to, U value) {
  return changed(to, [&](T before) { return std::min(before, static_cast<T>(value)); });
}
template <class T, class U, class V>
T atomicCAS(T* to, U expected, V value) {
  return changed(to, [&](T before) {
    return before == static_cast<T>(expected) ? static_cast<T>(value) : before;
  });
}
template <class T>
T __ldcg(const T* from) {
  return *from;
}
template <class T>
T __ldg(const T* from) {
  return *from;
}
inline size_t __cvta_generic_to_shared(const void* pointer) {
  return emulated::host.address_of(pointer);
}
