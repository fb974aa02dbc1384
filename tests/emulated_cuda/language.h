// CUDA C++ as the templates of src/device use it, for a host compiler. A kernel's source follows.
#pragma once

#include <cmath>
#include <numbers>
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
// The number of arguments; their sizes where `bytes` has room for them.
template <class... Arguments>
int sizes(void (*)(Arguments...), size_t* bytes) {
  if (bytes == nullptr) return sizeof...(Arguments);
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
// Of half turns, exact at quarters of a turn.
inline double sinpi(double x) {
  const double turn = std::remainder(x, 2.0), size = std::fabs(turn);
  return std::copysign(std::sin(std::numbers::pi * (size > 0.5 ? 1 - size : size)), turn);
}
inline double cospi(double x) { return sinpi(0.5 - std::fabs(std::remainder(x, 2.0))); }
inline float sinpif(float x) { return static_cast<float>(sinpi(x)); }
inline float cospif(float x) { return static_cast<float>(cospi(x)); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
