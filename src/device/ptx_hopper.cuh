// One instruction of sm_90a per function: TMA copies, warpgroup products, register reallocation.
// Follows ptx_barrier.
#pragma once

#include "device/types.cuh"

// The driver's CUtensorMap.
struct alignas(64) TensorMap {
  char bytes[128];
};

// Copies boxes of tensors of 3 to 5 dimensions to shared memory; coordinates innermost first.
__device__ __forceinline__ void ptx_copy_box(unsigned shared, const TensorMap& map,
                                             unsigned barrier, int c0, int c1, int c2) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4, %5}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2)
      : "memory");
}
__device__ __forceinline__ void ptx_copy_box(unsigned shared, const TensorMap& map,
                                             unsigned barrier, int c0, int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4, %5, %6}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}
__device__ __forceinline__ void ptx_copy_box(unsigned shared, const TensorMap& map,
                                             unsigned barrier, int c0, int c1, int c2, int c3,
                                             int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4, %5, %6, %7}], [%2];" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

// Copies 64 channels of one tap of the windows that follow one another (im2col) from the position
// (x, y[, z], image) on: its window's first element, which may be outside of the image. `dx`, `dy`,
// `dz`: of the tap.
__device__ __forceinline__ void ptx_copy_windows(unsigned shared, const TensorMap& map,
                                                 unsigned barrier, int channel, int x, int y,
                                                 int image, int dx, int dy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(channel), "r"(x), "r"(y), "r"(image),
      "h"(static_cast<unsigned short>(dx)), "h"(static_cast<unsigned short>(dy))
      : "memory");
}
__device__ __forceinline__ void ptx_copy_windows(unsigned shared, const TensorMap& map,
                                                 unsigned barrier, int channel, int x, int y, int z,
                                                 int image, int dx, int dy, int dz) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6, %7}], [%2], {%8, %9, %10};" ::"r"(shared),
      "l"(&map), "r"(barrier), "r"(channel), "r"(x), "r"(y), "r"(z), "r"(image),
      "h"(static_cast<unsigned short>(dx)), "h"(static_cast<unsigned short>(dy)),
      "h"(static_cast<unsigned short>(dz))
      : "memory");
}

// Copies by TMA that follow a barrier read what this thread has written to global memory.
__device__ __forceinline__ void ptx_fence_global_copies() {
  asm volatile("fence.proxy.async.global;" ::: "memory");
}
__device__ __forceinline__ void ptx_prefetch_map(const TensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

// Makes earlier writes to shared memory visible to TMA and the tensor cores.
__device__ __forceinline__ void ptx_async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Loads four floats from the shared memory of a block of the cluster.
__device__ __forceinline__ void ptx_load_cluster(float (&to)[4], unsigned address) {
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
               : "r"(address)
               : "memory");
}

// Named barrier `id` of the block, for `threads` threads.
__device__ __forceinline__ void ptx_named_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
// The same; returns whether `vote` is true in all of them.
__device__ __forceinline__ bool ptx_named_all(int id, int threads, bool vote) {
  unsigned all;
  asm volatile(
      "{\n.reg .pred p, q;\nsetp.ne.u32 q, %3, 0;\nbar.red.and.pred p, %1, %2, q;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(all)
      : "r"(id), "r"(threads), "r"(static_cast<unsigned>(vote))
      : "memory");
  return all != 0;
}
__device__ __forceinline__ void ptx_named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

template <int Registers>
__device__ __forceinline__ void ptx_give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void ptx_take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

__device__ __forceinline__ void ptx_product_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void ptx_product_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int Pending>
__device__ __forceinline__ void ptx_product_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

// The warpgroup's m64nNk16 products d = a · b (+ d if `add`), with b, and a unless it is in
// registers, in shared memory by descriptor. In score() rows of b are columns of the product
// (K-major), in value() they are of the contracted axis (MN-major). In across() rows of a are of
// the contracted axis, those of b are columns of the product.
template <typename T, int N>
struct Product;

#define RF_ROW(k)                                                                     \
  "+f"(d[2 * (k)][0]), "+f"(d[2 * (k)][1]), "+f"(d[2 * (k)][2]), "+f"(d[2 * (k)][3]), \
      "+f"(d[2 * (k) + 1][0]), "+f"(d[2 * (k) + 1][1]), "+f"(d[2 * (k) + 1][2]),      \
      "+f"(d[2 * (k) + 1][3])
#define RF_NAMES1 "%0, %1, %2, %3, %4, %5, %6, %7"
#define RF_ROWS1 RF_ROW(0)
#define RF_NAMES2 RF_NAMES1 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define RF_ROWS2 RF_ROWS1, RF_ROW(1)
#define RF_NAMES3 RF_NAMES2 ", %16, %17, %18, %19, %20, %21, %22, %23"
#define RF_ROWS3 RF_ROWS2, RF_ROW(2)
#define RF_NAMES4 RF_NAMES3 ", %24, %25, %26, %27, %28, %29, %30, %31"
#define RF_ROWS4 RF_ROWS3, RF_ROW(3)
#define RF_NAMES5 RF_NAMES4 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define RF_ROWS5 RF_ROWS4, RF_ROW(4)
#define RF_NAMES6 RF_NAMES5 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define RF_ROWS6 RF_ROWS5, RF_ROW(5)
#define RF_NAMES7 RF_NAMES6 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define RF_ROWS7 RF_ROWS6, RF_ROW(6)
#define RF_NAMES8 RF_NAMES7 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define RF_ROWS8 RF_ROWS7, RF_ROW(7)
#define RF_NAMES9 RF_NAMES8 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define RF_ROWS9 RF_ROWS8, RF_ROW(8)
#define RF_NAMES10 RF_NAMES9 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define RF_ROWS10 RF_ROWS9, RF_ROW(9)
#define RF_NAMES11 RF_NAMES10 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define RF_ROWS11 RF_ROWS10, RF_ROW(10)
#define RF_NAMES12 RF_NAMES11 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define RF_ROWS12 RF_ROWS11, RF_ROW(11)
#define RF_NAMES13 RF_NAMES12 ", %96, %97, %98, %99, %100, %101, %102, %103"
#define RF_ROWS13 RF_ROWS12, RF_ROW(12)
#define RF_NAMES14 RF_NAMES13 ", %104, %105, %106, %107, %108, %109, %110, %111"
#define RF_ROWS14 RF_ROWS13, RF_ROW(13)
#define RF_NAMES15 RF_NAMES14 ", %112, %113, %114, %115, %116, %117, %118, %119"
#define RF_ROWS15 RF_ROWS14, RF_ROW(14)
#define RF_NAMES16 RF_NAMES15 ", %120, %121, %122, %123, %124, %125, %126, %127"
#define RF_ROWS16 RF_ROWS15, RF_ROW(15)
// N = 16 M; R0 to R5 are the numbers of the operands after the 8 M registers of d.
#define RF_PRODUCT(T, TYPE, N, M, R0, R1, R2, R3, R4, R5)                                         \
  template <>                                                                                     \
  struct Product<T, N> {                                                                          \
    static __device__ __forceinline__ void score(float (&d)[N / 8][4], unsigned long long a,      \
                                                 unsigned long long b, int add) {                 \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " R2                                         \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                \
                   " {" RF_NAMES##M "}, " R0 ", " R1 ", p, 1, 1, 0, 0;\n}"                        \
                   : RF_ROWS##M                                                                   \
                   : "l"(a), "l"(b), "r"(add));                                                   \
    }                                                                                             \
    static __device__ __forceinline__ void value(float (&d)[N / 8][4], const unsigned (&a)[4],    \
                                                 unsigned long long b, int add) {                 \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " R5                                         \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                \
                   " {" RF_NAMES##M "}, {" R0 ", " R1 ", " R2 ", " R3 "}, " R4 ", p, 1, 1, 1;\n}" \
                   : RF_ROWS##M                                                                   \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));               \
    }                                                                                             \
    static __device__ __forceinline__ void value(float (&d)[N / 8][4], unsigned long long a,      \
                                                 unsigned long long b, int add) {                 \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " R2                                         \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                \
                   " {" RF_NAMES##M "}, " R0 ", " R1 ", p, 1, 1, 0, 1;\n}"                        \
                   : RF_ROWS##M                                                                   \
                   : "l"(a), "l"(b), "r"(add));                                                   \
    }                                                                                             \
    static __device__ __forceinline__ void across(float (&d)[N / 8][4], unsigned long long a,     \
                                                  unsigned long long b, int add) {                \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " R2                                         \
                   ", 0;\n"                                                                       \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE                \
                   " {" RF_NAMES##M "}, " R0 ", " R1 ", p, 1, 1, 1, 0;\n}"                        \
                   : RF_ROWS##M                                                                   \
                   : "l"(a), "l"(b), "r"(add));                                                   \
    }                                                                                             \
  }
#define RF_PRODUCTS(N, M, R0, R1, R2, R3, R4, R5)          \
  RF_PRODUCT(half_t, "f16", N, M, R0, R1, R2, R3, R4, R5); \
  RF_PRODUCT(bfloat_t, "bf16", N, M, R0, R1, R2, R3, R4, R5)

RF_PRODUCTS(16, 1, "%8", "%9", "%10", "%11", "%12", "%13");
RF_PRODUCTS(32, 2, "%16", "%17", "%18", "%19", "%20", "%21");
RF_PRODUCTS(48, 3, "%24", "%25", "%26", "%27", "%28", "%29");
RF_PRODUCTS(64, 4, "%32", "%33", "%34", "%35", "%36", "%37");
RF_PRODUCTS(80, 5, "%40", "%41", "%42", "%43", "%44", "%45");
RF_PRODUCTS(96, 6, "%48", "%49", "%50", "%51", "%52", "%53");
RF_PRODUCTS(112, 7, "%56", "%57", "%58", "%59", "%60", "%61");
RF_PRODUCTS(128, 8, "%64", "%65", "%66", "%67", "%68", "%69");
RF_PRODUCTS(144, 9, "%72", "%73", "%74", "%75", "%76", "%77");
RF_PRODUCTS(160, 10, "%80", "%81", "%82", "%83", "%84", "%85");
RF_PRODUCTS(176, 11, "%88", "%89", "%90", "%91", "%92", "%93");
RF_PRODUCTS(192, 12, "%96", "%97", "%98", "%99", "%100", "%101");
RF_PRODUCTS(208, 13, "%104", "%105", "%106", "%107", "%108", "%109");
RF_PRODUCTS(224, 14, "%112", "%113", "%114", "%115", "%116", "%117");
RF_PRODUCTS(240, 15, "%120", "%121", "%122", "%123", "%124", "%125");
RF_PRODUCTS(256, 16, "%128", "%129", "%130", "%131", "%132", "%133");

#undef RF_PRODUCTS
#undef RF_PRODUCT
