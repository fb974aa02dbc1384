// One instruction per function.
#pragma once

__device__ __forceinline__ float ptx_half_to_float(unsigned short bits) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
  return result;
}

__device__ __forceinline__ unsigned short ptx_float_to_half(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ __forceinline__ unsigned short ptx_float_to_bfloat(float value) {
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

// 2^x; denormal results are flushed to 0.
__device__ __forceinline__ float ptx_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ __forceinline__ float ptx_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// Adds 1 to a counter, after all that the thread's block has written before a barrier.
__device__ __forceinline__ void ptx_count_release(unsigned* counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
}
// Afterwards all writes of the counted blocks before their counts are visible.
__device__ __forceinline__ unsigned ptx_load_acquire(const unsigned* counter) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}
// 16 bytes from L2.
__device__ __forceinline__ uint4 ptx_load_global(const void* pointer) {
  uint4 r;
  asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(pointer)
               : "memory");
  return r;
}

// Brings the line of an address to L2.
__device__ __forceinline__ void ptx_prefetch(const void* pointer) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(pointer));
}

// 16 bytes that this kernel reads once, without allocation in L1.
__device__ __forceinline__ uint4 ptx_load_once(const uint4* pointer) {
  uint4 r;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(pointer));
  return r;
}

// The same, and ptxas moves it neither behind nor before a wait for other kernels, as it does with
// loads that are not strong.
__device__ __forceinline__ uint4 ptx_load_in_order(const uint4* pointer) {
  uint4 r;
  asm volatile("ld.relaxed.gpu.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
               : "l"(pointer));
  return r;
}

__device__ __forceinline__ unsigned ptx_load_in_order(const unsigned* pointer) {
  unsigned r;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(r) : "l"(pointer));
  return r;
}
__device__ __forceinline__ unsigned short ptx_load_in_order(const unsigned short* pointer) {
  unsigned short r;
  asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(r) : "l"(pointer));
  return r;
}
__device__ __forceinline__ unsigned ptx_load_in_order(const unsigned char* pointer) {
  unsigned r;
  asm volatile("ld.relaxed.gpu.global.u8 %0, [%1];" : "=r"(r) : "l"(pointer));
  return r;
}

// Two floats as two halves, `low` in the low bits.
__device__ __forceinline__ unsigned ptx_pack_half(float low, float high) {
  unsigned bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

__device__ __forceinline__ unsigned ptx_pack_bfloat(float low, float high) {
  unsigned bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
}

__device__ __forceinline__ unsigned ptx_shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 16 bytes from global to shared memory; zeros if not `valid`.
__device__ __forceinline__ void ptx_copy_async(void* shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(ptx_shared_address(shared)),
               "l"(global), "r"(valid ? 16 : 0)
               : "memory");
}

// 16 bytes with the L2 evict-first policy.
__device__ __forceinline__ void ptx_copy_async_passing(void* shared, const void* global) {
  asm volatile(
      "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, policy;\n}" ::"r"(
          ptx_shared_address(shared)),
      "l"(global)
      : "memory");
}

// The first `bytes` of 16, then zeros.
__device__ __forceinline__ void ptx_copy_async_part(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(ptx_shared_address(shared)),
               "l"(global), "r"(bytes)
               : "memory");
}

// `Width` bytes from global to shared memory, 4 or 8, of which the first `bytes` are copied; then
// zeros.
template <int Width>
__device__ __forceinline__ void ptx_copy_async_narrow(void* shared, const void* global, int bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(ptx_shared_address(shared)),
               "l"(global), "n"(Width), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void ptx_copy_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int Pending>
__device__ __forceinline__ void ptx_copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

// Four 8x8 matrices of 16-bit elements; each lane has the shared memory address of one row.
__device__ __forceinline__ void ptx_load_matrix(unsigned (&r)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void ptx_load_matrix_transposed(unsigned (&r)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared)
               : "memory");
}
__device__ __forceinline__ void ptx_load_matrix(unsigned (&r)[4], const void* shared) {
  ptx_load_matrix(r, ptx_shared_address(shared));
}
__device__ __forceinline__ void ptx_load_matrix_transposed(unsigned (&r)[4], const void* shared) {
  ptx_load_matrix_transposed(r, ptx_shared_address(shared));
}

__device__ __forceinline__ void ptx_mma_half(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void ptx_mma_bfloat(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                               unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The nearest number of TF32's precision; ties go away from zero.
__device__ __forceinline__ float ptx_round_to_tf32(float x) {
  unsigned bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

// Of floats, whose lowest 13 bits are ignored.
__device__ __forceinline__ void ptx_mma_tf32(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ unsigned ptx_cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ __forceinline__ void ptx_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

// The same without release semantics, for a thread that has written nothing.
__device__ __forceinline__ void ptx_cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ __forceinline__ void ptx_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The address of the shared variable at `address` in block `rank` of the cluster.
__device__ __forceinline__ unsigned ptx_map_shared(unsigned address, unsigned rank) {
  unsigned result;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(result) : "r"(address), "r"(rank));
  return result;
}

__device__ __forceinline__ unsigned long long ptx_load_cluster(unsigned address) {
  unsigned long long bits;
  asm volatile("ld.shared::cluster.b64 %0, [%1];" : "=l"(bits) : "r"(address) : "memory");
  return bits;
}
__device__ __forceinline__ float ptx_load_cluster_float(unsigned address) {
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
#endif

// Programmatic dependent launch (griddepcontrol): a kernel starts while those before it still run.
// On GPUs without it, or where the launch does not ask for it, both functions do nothing.

// Lets the next kernel start as soon as all blocks of this one have called this.
__device__ __forceinline__ void ptx_launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Waits until the kernels before this one have ended and their writes are visible. A kernel that
// may start early touches nothing that a run writes before it calls this.
__device__ __forceinline__ void ptx_await_launches() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The same; all threads of the block call it. ptxas moves loads before the wait, but not before a
// barrier.
__device__ __forceinline__ void ptx_await_launches_together() {
#if __CUDA_ARCH__ >= 900
  ptx_await_launches();
  __syncthreads();
#endif
}
