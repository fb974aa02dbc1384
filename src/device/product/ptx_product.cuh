// The warpgroup's m64n256k16 product of two matrices in shared memory, one instruction per
// function.
#pragma once

#include "device/types.cuh"

// d += a · b. Rows of a are rows of the product with 16 elements of the contracted axis. Rows of b
// are columns of the product (ByRows), or of the contracted axis.
template <typename T, bool ByRows>
struct TileProduct;

#define RF_FOUR(k) "+f"(d[k][0]), "+f"(d[k][1]), "+f"(d[k][2]), "+f"(d[k][3])
#define RF_SIXTEEN(k) RF_FOUR(k), RF_FOUR(k + 1), RF_FOUR(k + 2), RF_FOUR(k + 3)
#define RF_TILE_PRODUCT(T, TYPE, BY_ROWS, TRANSPOSED)                                             \
  template <>                                                                                     \
  struct TileProduct<T, BY_ROWS> {                                                                \
    static __device__ __forceinline__ void add(float (&d)[32][4], unsigned long long a,           \
                                               unsigned long long b) {                            \
      asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32." TYPE "." TYPE                   \
                   " {"                                                                           \
                   "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "       \
                   "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "       \
                   "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "       \
                   "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, "       \
                   "%58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, "       \
                   "%72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "       \
                   "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, "       \
                   "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "     \
                   "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, "     \
                   "%124, %125, %126, %127"                                                       \
                   "}, %128, %129, 1, 1, 1, 0, " TRANSPOSED ";"                                   \
                   : RF_SIXTEEN(0), RF_SIXTEEN(4), RF_SIXTEEN(8), RF_SIXTEEN(12), RF_SIXTEEN(16), \
                     RF_SIXTEEN(20), RF_SIXTEEN(24), RF_SIXTEEN(28)                               \
                   : "l"(a), "l"(b));                                                             \
    }                                                                                             \
  }

RF_TILE_PRODUCT(half_t, "f16", true, "0");
RF_TILE_PRODUCT(half_t, "f16", false, "1");
RF_TILE_PRODUCT(bfloat_t, "bf16", true, "0");
RF_TILE_PRODUCT(bfloat_t, "bf16", false, "1");

#undef RF_TILE_PRODUCT
#undef RF_SIXTEEN
#undef RF_FOUR
