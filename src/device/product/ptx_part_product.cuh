// wgmma of floats rounded to TF32 with 8 terms, of rows in registers and columns that are
// contiguous along the contracted axis (device/ptx_hopper.cuh).
#pragma once

#include "device/ptx_hopper.cuh"

// N = 16 M; R0 to R5 are the numbers of the operands after the 8 M registers of d. A thread has, of
// each 8 rows of its warp's 16, one row's terms t and t + 4 (t: its place in a group of four).
#define RF_PART_PRODUCT(N, M, R0, R1, R2, R3, R4, R5)                                          \
  template <>                                                                                  \
  struct Product<float, N> {                                                                   \
    static __device__ __forceinline__ void score(float (&d)[N / 8][4], const unsigned (&a)[4], \
                                                 unsigned long long b, int add) {              \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " R5                                      \
                   ", 0;\n"                                                                    \
                   "wgmma.mma_async.sync.aligned.m64n" #N                                      \
                   "k8.f32.tf32.tf32"                                                          \
                   " {" RF_NAMES##M "}, {" R0 ", " R1 ", " R2 ", " R3 "}, " R4 ", p, 1, 1;\n}" \
                   : RF_ROWS##M                                                                \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));            \
    }                                                                                          \
  }

RF_PART_PRODUCT(64, 4, "%32", "%33", "%34", "%35", "%36", "%37");
RF_PART_PRODUCT(128, 8, "%64", "%65", "%66", "%67", "%68", "%69");

#undef RF_PART_PRODUCT
