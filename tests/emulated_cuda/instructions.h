// The functions of src/device that hold one PTX instruction each, for the host, with the results
// that NVIDIA's PTX ISA states.
#pragma once

#include "emulated_cuda/bits.h"
#include "emulated_cuda/matrices.h"
#include "emulated_cuda/memory.h"
#include "emulated_cuda/threads.h"

inline float ptx_half_to_float(unsigned short bits) { return emulated::half_to_float(bits); }
inline unsigned short ptx_float_to_half(float x) { return emulated::float_to_half(x); }
inline unsigned short ptx_float_to_bfloat(float x) { return emulated::float_to_bfloat(x); }
inline float ptx_exp2(float x) { return emulated::flushed(std::exp2(emulated::flushed(x))); }
inline float ptx_reciprocal(float x) { return emulated::flushed(1.0f / emulated::flushed(x)); }
inline void ptx_count_release(unsigned* counter) { atomicAdd(counter, 1u); }
inline unsigned ptx_load_acquire(const unsigned* counter) {
  emulated::host.yield();
  return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}
inline uint4 ptx_load_global(const void* from) { return *static_cast<const uint4*>(from); }
inline void ptx_prefetch(const void*) {}
inline uint4 ptx_load_once(const uint4* from) {
  if (reinterpret_cast<uintptr_t>(from) % 16 != 0) std::abort();
  return *from;
}
inline uint4 ptx_load_in_order(const uint4* from) { return ptx_load_once(from); }
inline unsigned ptx_load_in_order(const unsigned* from) { return *from; }
inline unsigned short ptx_load_in_order(const unsigned short* from) { return *from; }
inline unsigned ptx_load_in_order(const unsigned char* from) { return *from; }
inline unsigned ptx_pack_half(float low, float high) {
  return emulated::pack<emulated::Half>(low, high);
}
inline unsigned ptx_pack_bfloat(float low, float high) {
  return emulated::pack<emulated::Bfloat>(low, high);
}
inline void ptx_copy_async(void* shared, const void* global, bool valid) {
  emulated::copy_later(shared, global, 16, valid ? 16 : 0);
}
inline void ptx_copy_async_passing(void* shared, const void* global) {
  emulated::copy_later(shared, global, 16, 16);
}
inline void ptx_copy_async_part(void* shared, const void* global, int bytes) {
  emulated::copy_later(shared, global, 16, bytes);
}
template <int Width>
void ptx_copy_async_narrow(void* shared, const void* global, int bytes) {
  emulated::copy_later(shared, global, Width, bytes);
}
inline void ptx_copy_commit() { ++emulated::copies[emulated::current->number].group; }
template <int Pending>
void ptx_copy_wait() {
  emulated::await_copies(Pending);
}
inline void ptx_load_matrix(unsigned (&r)[4], unsigned shared) {
  emulated::MatrixRows own{shared, r};
  emulated::host.with_warp(0xffffffff, &own, emulated::load_matrices<false>);
}
inline void ptx_load_matrix_transposed(unsigned (&r)[4], unsigned shared) {
  emulated::MatrixRows own{shared, r};
  emulated::host.with_warp(0xffffffff, &own, emulated::load_matrices<true>);
}
inline void ptx_mma_half(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::run_mma(c, a, b0, b1, emulated::mma_16<emulated::Half>);
}
inline void ptx_mma_bfloat(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::run_mma(c, a, b0, b1, emulated::mma_16<emulated::Bfloat>);
}
inline void ptx_mma_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  emulated::run_mma(c, a, b0, b1, emulated::mma_tf32);
}
inline float ptx_round_to_tf32(float x) {
  return std::bit_cast<float>((std::bit_cast<unsigned>(x) + 0x1000) & 0xffffe000);
}
#define RF_INTEGER_MMA(A, B, A_TYPE, B_TYPE)                                         \
  template <>                                                                        \
  struct IntegerMma<A, B> {                                                          \
    static void add(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { \
      emulated::run_mma(c, a, b0, b1, emulated::mma_bytes<A, B>);                    \
    }                                                                                \
  }
inline unsigned ptx_add_halves(unsigned a, unsigned b) {
  return emulated::fma_parts<emulated::Half>(a, 0x3c003c00, b);
}
inline unsigned ptx_multiply_halves(unsigned a, unsigned b) {
  return emulated::fma_parts<emulated::Half>(a, b, 0x80008000);
}
inline unsigned ptx_fma_halves(unsigned a, unsigned b, unsigned c) {
  return emulated::fma_parts<emulated::Half>(a, b, c);
}
inline unsigned ptx_fma_bfloats(unsigned a, unsigned b, unsigned c) {
  return emulated::fma_parts<emulated::Bfloat>(a, b, c);
}
inline unsigned ptx_float_to_e4m3(float x) { return emulated::code_of_byte<4>(x); }
inline unsigned ptx_float_to_e5m2(float x) { return emulated::code_of_byte<5>(x); }
inline unsigned short ptx_e4m3_to_half(unsigned char code) {
  return emulated::float_to_half(emulated::byte_to_float<4>(code));
}
inline unsigned ptx_count(unsigned* counter, unsigned most) {
  return changed(counter, [&](unsigned before) { return before >= most ? 0u : before + 1; });
}
inline bool ptx_elect() {
  __syncwarp();
  return (emulated::current->number & 31) == 0;
}
inline float max_of(float a, float b) {
  return a != a ? a : b != b ? b : a > b ? a : a < b ? b : std::signbit(a) ? b : a;
}
inline float min_of(float a, float b) {
  return a != a ? a : b != b ? b : a < b ? a : a > b ? b : std::signbit(a) ? a : b;
}
inline void ptx_launch_dependents() {}
inline void ptx_await_launches() {}
