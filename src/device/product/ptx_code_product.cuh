// wgmma of 8-bit floats (E4M3FN) with 32 terms, of rows that are contiguous along the contracted
// axis (device/ptx_hopper.cuh).
#pragma once

#include "device/low_bit.cuh"
#include "device/ptx_hopper.cuh"

// N = 16 M; R0 to R2 are the numbers of the operands after the 8 M registers of d.
#define RF_CODE_PRODUCT(N, M, R0, R1, R2)                                                    \
  template <>                                                                                \
  struct Product<e4m3fn_t, N> {                                                              \
    static __device__ __forceinline__ void score(float (&d)[N / 8][4], unsigned long long a, \
                                                 unsigned long long b, int add) {            \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " R2                                    \
                   ", 0;\n"                                                                  \
                   "wgmma.mma_async.sync.aligned.m64n" #N                                    \
                   "k32.f32.e4m3.e4m3"                                                       \
                   " {" RF_NAMES##M "}, " R0 ", " R1 ", p, 1, 1;\n}"                         \
                   : RF_ROWS##M                                                              \
                   : "l"(a), "l"(b), "r"(add));                                              \
    }                                                                                        \
  }

RF_CODE_PRODUCT(64, 4, "%32", "%33", "%34");
RF_CODE_PRODUCT(128, 8, "%64", "%65", "%66");

#undef RF_CODE_PRODUCT
