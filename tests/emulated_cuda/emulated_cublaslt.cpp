// libcublasLt.so.13 of the emulated GPU.
#include <cstring>
#include <functional>

#include "cuda/cublaslt_api.h"
#include "emulated_cuda/library_product.h"

using namespace redfuser::cuda;
using namespace redfuser::emulated_cuda;

extern "C" int fake_work(void* stream, const std::function<void()>* work);

namespace {

double number(const void* data, int type) {
  if (data == nullptr) return 0;
  return type == kReal64      ? *static_cast<const double*>(data)
         : type == kInteger32 ? *static_cast<const int32_t*>(data)
                              : *static_cast<const float*>(data);
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130000; }
const char* cublasLtGetStatusString(BlasStatus) { return "an emulated status"; }
BlasStatus cublasLtCreate(BlasHandle* handle) { return *handle = new int(0), 0; }
BlasStatus cublasLtDestroy(BlasHandle handle) { return delete static_cast<int*>(handle), 0; }
BlasStatus cublasLtMatmulDescCreate(ProductDescriptor* made, int, int scale) {
  auto* descriptor = new Descriptor;
  descriptor->scale = scale;
  return *made = descriptor, 0;
}
BlasStatus cublasLtMatmulDescDestroy(ProductDescriptor made) {
  return delete static_cast<Descriptor*>(made), 0;
}
BlasStatus cublasLtMatmulDescSetAttribute(ProductDescriptor made, int which, const void* value,
                                          size_t bytes) {
  auto& to = *static_cast<Descriptor*>(made);
  void* const places[] = {&to.transposed_a, &to.transposed_b, &to.epilogue, &to.bias,
                          &to.scale_a,      &to.scale_b,      &to.mode_a,   &to.mode_b};
  const int names[] = {kDescriptorTransposeA,  kDescriptorTransposeB, kDescriptorEpilogue,
                       kDescriptorBiasPointer, kDescriptorScaleA,     kDescriptorScaleB,
                       kDescriptorScaleModeA,  kDescriptorScaleModeB};
  for (int i = 0; i < 8; ++i) {
    if (names[i] == which) return std::memcpy(places[i], value, bytes), 0;
  }
  return 0;
}
BlasStatus cublasLtMatrixLayoutCreate(MatrixLayout* made, int type, uint64_t rows, uint64_t columns,
                                      int64_t leading) {
  return *made = new Layout{type, rows, columns, leading, 0, 1}, 0;
}
BlasStatus cublasLtMatrixLayoutDestroy(MatrixLayout made) {
  return delete static_cast<Layout*>(made), 0;
}
BlasStatus cublasLtMatrixLayoutSetAttribute(MatrixLayout made, int which, const void* value,
                                            size_t bytes) {
  auto& to = *static_cast<Layout*>(made);
  if (which == kLayoutBatchCount) std::memcpy(&to.batches, value, bytes);
  if (which == kLayoutBatchStride) std::memcpy(&to.batch_stride, value, bytes);
  return 0;
}
BlasStatus cublasLtMatmulPreferenceCreate(ProductPreference* made) { return *made = new int(0), 0; }
BlasStatus cublasLtMatmulPreferenceDestroy(ProductPreference made) {
  return delete static_cast<int*>(made), 0;
}
BlasStatus cublasLtMatmulPreferenceSetAttribute(ProductPreference, int, const void*, size_t) {
  return 0;
}
BlasStatus cublasLtMatmulAlgoGetHeuristic(BlasHandle, ProductDescriptor, MatrixLayout, MatrixLayout,
                                          MatrixLayout, MatrixLayout, ProductPreference, int wanted,
                                          BlasHeuristic* proposals, int* found) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) proposals[0] = {};
  return 0;
}
BlasStatus cublasLtMatmul(BlasHandle, ProductDescriptor made, const void* alpha, const void* a,
                          MatrixLayout a_layout, const void* b, MatrixLayout b_layout,
                          const void* beta, const void* c, MatrixLayout c_layout, void* d,
                          MatrixLayout d_layout, const BlasAlgorithm*, void*, size_t,
                          void* stream) {
  const auto& descriptor = *static_cast<Descriptor*>(made);
  const auto layout = [](MatrixLayout from) { return *static_cast<Layout*>(from); };
  const LibraryProduct call{descriptor,
                            layout(a_layout),
                            layout(b_layout),
                            layout(c_layout),
                            layout(d_layout),
                            a,
                            b,
                            c,
                            d,
                            number(alpha, descriptor.scale),
                            number(beta, descriptor.scale)};
  const std::function<void()> work = [call] { call.run(); };
  return fake_work(stream, &work);
}

}  // extern "C"
