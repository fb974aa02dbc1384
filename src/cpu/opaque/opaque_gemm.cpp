#include "cpu/opaque/opaque_gemm.h"

#include <type_traits>

#include "cpu/simd/kernel_table.h"
#include "redfuser/memory_limit.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {
namespace {

// Packing space of the calling thread, kept for its lifetime.
void* scratch() {
  // Lasts longer than any limit of a run, and counts for none.
  thread_local Tensor space = [] {
    const MemoryLimit none(0);
    return Tensor(DType::UInt8, {cpu::kGemmScratchBytes});
  }();
  return space.mutable_data();
}

template <typename T>
constexpr bool kSingle = std::is_same_v<T, float>;
template <typename T>
constexpr auto kStorage = static_cast<uint8_t>(kSingle<T> ? DType::Float32 : DType::Float64);

}  // namespace

template <typename T>
void gemm_accumulate(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, bool a_transposed,
                     const T* b, int64_t ldb, T* c, int64_t ldc) {
  if (m <= 0 || n <= 0 || k <= 0) return;
  cpu::GemmArgs args;
  args.m = m;
  args.n = n;
  args.k = k;
  args.a = {a, kStorage<T>, a_transposed ? 1 : lda, a_transposed ? lda : 1};
  args.b = {b, kStorage<T>, ldb, 1};
  args.c = c;
  args.c_stride = ldc;
  args.accumulate = true;
  args.scratch = scratch();
  (kSingle<T> ? cpu::kernels().gemm_f32 : cpu::kernels().gemm_f64)(args);
}

template <typename T>
void pack_panels(int64_t k, int64_t n, const T* b, int64_t ldb, T* panels) {
  (kSingle<T> ? kernels().pack_f32 : kernels().pack_f64)({b, kStorage<T>, ldb, 1}, k, n, panels);
}

template <typename T>
void gemm_panels(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* panels, T* c,
                 int64_t ldc) {
  GemmArgs args;
  args.m = m, args.n = n, args.k = k;
  args.a = {a, kStorage<T>, lda, 1};
  args.panels = panels;
  args.c = c, args.c_stride = ldc, args.c_padded = true;
  (kSingle<T> ? kernels().gemm_f32 : kernels().gemm_f64)(args);
}

template void pack_panels<float>(int64_t, int64_t, const float*, int64_t, float*);
template void pack_panels<double>(int64_t, int64_t, const double*, int64_t, double*);
template void gemm_panels<float>(int64_t, int64_t, int64_t, const float*, int64_t, const float*,
                                 float*, int64_t);
template void gemm_panels<double>(int64_t, int64_t, int64_t, const double*, int64_t, const double*,
                                  double*, int64_t);
template void gemm_accumulate<float>(int64_t, int64_t, int64_t, const float*, int64_t, bool,
                                     const float*, int64_t, float*, int64_t);
template void gemm_accumulate<double>(int64_t, int64_t, int64_t, const double*, int64_t, bool,
                                      const double*, int64_t, double*, int64_t);

}  // namespace redfuser::cpu
