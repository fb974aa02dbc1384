// wgmma with eight columns (device/ptx_hopper.cuh), for products whose 64 rows are of a matrix of
// weights.
#pragma once

#include "device/ptx_hopper.cuh"

#define RF_EIGHT(NAME, TYPE, ACROSS)                                                 \
  static __device__ __forceinline__ void NAME(float(&d)[1][4], unsigned long long a, \
                                              unsigned long long b, int add) {       \
    asm volatile(                                                                    \
        "{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"                                  \
        "wgmma.mma_async.sync.aligned.m64n8k16.f32." TYPE "." TYPE                   \
        " {%0, %1, %2, %3}, %4, %5, p, 1, 1, " ACROSS ", 0;\n}"                      \
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3])                 \
        : "l"(a), "l"(b), "r"(add));                                                 \
  }
template <>
struct Product<half_t, 8> {
  RF_EIGHT(score, "f16", "0")
  RF_EIGHT(across, "f16", "1")
};
template <>
struct Product<bfloat_t, 8> {
  RF_EIGHT(score, "bf16", "0")
  RF_EIGHT(across, "bf16", "1")
};
#undef RF_EIGHT
