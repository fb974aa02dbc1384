// libcublasLt.so.13 of fake_cuda.h: an algorithm is its number among the proposals.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "cuda/cublaslt_api.h"
#include "fake_cuda/fake_cuda.h"

using redfuser::device_tests::FakeCuda;
using namespace redfuser::cuda;

extern "C" {

FakeCuda* fake_cuda();
int fake_product(void* stream, int proposal);

size_t cublasLtGetVersion() { return 130000; }
const char* cublasLtGetStatusString(BlasStatus) { return "a fake status"; }
BlasStatus cublasLtCreate(BlasHandle* handle) { return *handle = fake_cuda(), 0; }
BlasStatus cublasLtDestroy(BlasHandle) { return 0; }
BlasStatus cublasLtMatmulDescCreate(ProductDescriptor* made, int, int) {
  return *made = fake_cuda(), 0;
}
BlasStatus cublasLtMatmulDescDestroy(ProductDescriptor) { return 0; }
BlasStatus cublasLtMatmulDescSetAttribute(ProductDescriptor, int, const void*, size_t) { return 0; }
BlasStatus cublasLtMatrixLayoutCreate(MatrixLayout* made, int, uint64_t, uint64_t, int64_t) {
  return *made = fake_cuda(), 0;
}
BlasStatus cublasLtMatrixLayoutDestroy(MatrixLayout) { return 0; }
BlasStatus cublasLtMatrixLayoutSetAttribute(MatrixLayout, int, const void*, size_t) { return 0; }
BlasStatus cublasLtMatmulPreferenceCreate(ProductPreference* made) {
  return *made = new bool(false), 0;  // whether partial sums keep their precision
}
BlasStatus cublasLtMatmulPreferenceDestroy(ProductPreference preference) {
  return delete static_cast<bool*>(preference), 0;
}
BlasStatus cublasLtMatmulPreferenceSetAttribute(ProductPreference preference, int which,
                                                const void*, size_t) {
  if (which == kPreferenceReductions) *static_cast<bool*>(preference) = true;
  return 0;
}
BlasStatus cublasLtMatmulAlgoGetHeuristic(BlasHandle, ProductDescriptor, MatrixLayout, MatrixLayout,
                                          MatrixLayout, MatrixLayout, ProductPreference preference,
                                          int wanted, BlasHeuristic* proposals, int* found) {
  ++std::atomic_ref(fake_cuda()->proposals_asked);
  *found = *static_cast<bool*>(preference) ? std::min(wanted, fake_cuda()->proposals) : 0;
  for (int i = 0; i < *found; ++i) {
    proposals[i] = {};
    proposals[i].algorithm.data[0] = static_cast<uint64_t>(i);
  }
  return 0;
}
BlasStatus cublasLtMatmul(BlasHandle, ProductDescriptor, const void*, const void*, MatrixLayout,
                          const void*, MatrixLayout, const void*, const void*, MatrixLayout, void*,
                          MatrixLayout, const BlasAlgorithm* algorithm, void*, size_t,
                          void* stream) {
  return fake_product(stream, static_cast<int>(algorithm->data[0]));
}

}  // extern "C"
