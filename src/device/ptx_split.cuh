// One instruction per function: what blocks that share rows need.
#pragma once

// Counts up to `most` and then to 0 again; returns the number before. What the block wrote before a
// barrier that this thread was in is seen by those who count later, behind a barrier with theirs.
__device__ __forceinline__ unsigned ptx_count(unsigned* counter, unsigned most) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(most)
               : "memory");
  return before;
}

#if __CUDA_ARCH__ >= 900
// True in one lane of the warp, all of which call it. The compiler knows that what follows runs in
// one thread, and needs no loop over lanes for instructions with operands of the warp.
__device__ __forceinline__ bool ptx_elect() {
  unsigned elected;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(elected));
  return elected != 0;
}
#endif
