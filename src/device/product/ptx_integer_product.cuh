// Products of 8-bit integers by single warps, and what goes with them, one instruction per
// function.
#pragma once

#include "device/ptx.cuh"

// c += a · b, the sums wrapping around: a has 16 rows of 32 elements of the contracted axis, b has
// 8 columns. `A` and `B` are signed char or unsigned char.
template <typename A, typename B>
struct IntegerMma;

#define RF_INTEGER_MMA(A, B, A_TYPE, B_TYPE)                                                     \
  template <>                                                                                    \
  struct IntegerMma<A, B> {                                                                      \
    static __device__ __forceinline__ void add(int (&c)[4], const unsigned (&a)[4], unsigned b0, \
                                               unsigned b1) {                                    \
      asm("mma.sync.aligned.m16n8k32.row.col.s32." A_TYPE "." B_TYPE                             \
          ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                           \
          : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                                       \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));                       \
    }                                                                                            \
  }

RF_INTEGER_MMA(signed char, signed char, "s8", "s8");
RF_INTEGER_MMA(signed char, unsigned char, "s8", "u8");
RF_INTEGER_MMA(unsigned char, signed char, "u8", "s8");
RF_INTEGER_MMA(unsigned char, unsigned char, "u8", "u8");

#undef RF_INTEGER_MMA

#if __CUDA_ARCH__ >= 900
// Of a block of the cluster.
__device__ __forceinline__ int ptx_load_cluster_int(unsigned address) {
  int value;
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
#endif
