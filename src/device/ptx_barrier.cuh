// One instruction of sm_90 per function: barriers in shared memory, which count arrivals and bytes.
#pragma once

__device__ __forceinline__ void ptx_barrier_init(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to TMA and to the cluster.
__device__ __forceinline__ void ptx_barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void ptx_barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and adds `bytes` of copies that the phase waits for.
__device__ __forceinline__ void ptx_barrier_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// True if the phase of the parity is complete; waits for a hardware-defined time.
__device__ __forceinline__ bool ptx_barrier_try_wait(unsigned barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

// Writes 8 bytes to the shared memory of a block of the cluster, counted by a barrier of that
// block.
__device__ __forceinline__ void ptx_store_async(unsigned address, unsigned long long bits,
                                                unsigned barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(address),
      "l"(bits), "r"(barrier)
      : "memory");
}
// The same of 4 bytes.
__device__ __forceinline__ void ptx_store_async(unsigned address, float value, unsigned barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(address),
      "r"(__float_as_uint(value)), "r"(barrier)
      : "memory");
}
// The same of 16 bytes.
__device__ __forceinline__ void ptx_store_async(unsigned address, uint4 bits, unsigned barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%2,%3,%4}, "
      "[%5];" ::"r"(address),
      "r"(bits.x), "r"(bits.y), "r"(bits.z), "r"(bits.w), "r"(barrier)
      : "memory");
}
