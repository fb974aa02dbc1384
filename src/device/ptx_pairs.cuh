// Arithmetic on pairs of 16-bit floats in a word, one instruction per function.
#pragma once

__device__ __forceinline__ unsigned ptx_add_halves(unsigned a, unsigned b) {
  unsigned r;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

__device__ __forceinline__ unsigned ptx_multiply_halves(unsigned a, unsigned b) {
  unsigned r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
}

// a · b + c, rounded once.
__device__ __forceinline__ unsigned ptx_fma_halves(unsigned a, unsigned b, unsigned c) {
  unsigned r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}

// The same of bfloats.
__device__ __forceinline__ unsigned ptx_fma_bfloats(unsigned a, unsigned b, unsigned c) {
  unsigned r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
}
