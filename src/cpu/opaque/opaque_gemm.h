// Dense row-major matrix products inside opaque kernels, one thread.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// c[m,n] += a[m,k] · b[k,n]; leading dimensions in elements. With `a_transposed`, a is stored as
// [k,m]. T is float or double.
template <typename T>
void gemm_accumulate(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, bool a_transposed,
                     const T* b, int64_t ldb, T* c, int64_t ldc);

// B[k,n] of `ldb` elements from row to row, packed for gemm_panels into panel_elements(k, n).
inline int64_t panel_elements(int64_t k, int64_t n) { return k * ((n + 15) / 16 * 16); }
template <typename T>
void pack_panels(int64_t k, int64_t n, const T* b, int64_t ldb, T* panels);

// c[m,n] = a[m,k] · B, where columns up to the next multiple of 16 of n are written too.
template <typename T>
void gemm_panels(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* panels, T* c,
                 int64_t ldc);

}  // namespace redfuser::cpu
