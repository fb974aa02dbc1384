// One instruction per function, for blocks that share rows.
#pragma once

// Increments the counter, from `most` back to 0; returns the old number. Writes of the block before
// a __syncthreads() of this thread are visible to blocks that count later, after their
// __syncthreads().
__device__ __forceinline__ unsigned ptx_count(unsigned* counter, unsigned most) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(most)
               : "memory");
  return before;
}

#if __CUDA_ARCH__ >= 900
// True in one lane of the warp; all lanes call it. The compiler then knows that one thread runs,
// and emits no loop over lanes for instructions with warp-uniform operands.
__device__ __forceinline__ bool ptx_elect() {
  unsigned elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected));
  return elected != 0;
}
#endif
