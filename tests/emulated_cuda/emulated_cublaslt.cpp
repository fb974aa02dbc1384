// libcublasLt.so.13 of the emulated GPU: sums of products in fp64, rounded once.
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "cuda/cublaslt_api.h"

using namespace redfuser::cuda;

extern "C" int fake_work(void* stream, const std::function<void()>* work);

namespace {

struct Descriptor {
  int compute = 0, scale = 0;
  int transposed_a = 0, transposed_b = 0, epilogue = 0;
  int mode_a = 0, mode_b = 0;
  const void *bias = nullptr, *scale_a = nullptr, *scale_b = nullptr;
};
struct Layout {
  int type = 0;
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, batch_stride = 0;
  int batches = 1;
};

float small_float(unsigned char code, int exponent_bits) {
  const int mantissa_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  if (exponent_bits == 4 && (code & 0x7f) == 0x7f) return std::nanf("");
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const int power = (exponent == 0 ? 1 : exponent) - bias - mantissa_bits;
  const float size = std::ldexp(static_cast<float>(whole), power);
  return (code & 0x80) != 0 ? -size : size;
}

template <class T>
T at(const void* data, int64_t i) {
  return static_cast<const T*>(data)[i];
}
double load(const void* data, int type, int64_t i) {
  switch (type) {
    case kReal64:
      return at<double>(data, i);
    case kReal16:
      return static_cast<double>(static_cast<float>(at<_Float16>(data, i)));
    case kRealBrain16:
      return std::bit_cast<float>(static_cast<unsigned>(at<uint16_t>(data, i)) << 16);
    case kInteger8:
      return at<int8_t>(data, i);
    case kInteger32:
      return at<int32_t>(data, i);
    case kReal8E4M3:
      return small_float(at<unsigned char>(data, i), 4);
    case kReal8E5M2:
      return small_float(at<unsigned char>(data, i), 5);
    default:
      return at<float>(data, i);
  }
}
void store(void* data, int type, int64_t i, double value) {
  const auto rounded = static_cast<float>(value);
  switch (type) {
    case kReal64:
      static_cast<double*>(data)[i] = value;
      break;
    case kReal16:
      static_cast<_Float16*>(data)[i] = static_cast<_Float16>(rounded);
      break;
    case kRealBrain16: {
      const auto bits = std::bit_cast<unsigned>(rounded);
      static_cast<uint16_t*>(data)[i] =
          rounded != rounded ? 0x7fff
                             : static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
      break;
    }
    case kInteger32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(static_cast<int64_t>(value));
      break;
    default:
      static_cast<float*>(data)[i] = rounded;
  }
}

struct Call {
  Descriptor descriptor;
  Layout a, b, c, d;
  const void *at_a, *at_b, *at_c;
  void* at_d;
  double alpha, beta;

  double scale(const void* scales, int mode, int64_t line) const {
    return scales == nullptr ? 1.0 : at<float>(scales, mode == kScaleLines ? line : 0);
  }
  // All matrices are stored by columns.
  void run() const {
    const int64_t terms = static_cast<int64_t>(descriptor.transposed_a ? a.rows : a.columns);
    for (int batch = 0; batch < d.batches; ++batch) {
      for (int64_t column = 0; column < static_cast<int64_t>(d.columns); ++column) {
        for (int64_t row = 0; row < static_cast<int64_t>(d.rows); ++row) {
          store(at_d, d.type, batch * d.batch_stride + column * d.leading + row,
                element(batch, row, column, terms));
        }
      }
    }
  }
  double element(int batch, int64_t row, int64_t column, int64_t terms) const {
    double sum = 0;
    for (int64_t k = 0; k < terms; ++k) {
      const int64_t left = descriptor.transposed_a ? row * a.leading + k : k * a.leading + row;
      const int64_t right =
          descriptor.transposed_b ? k * b.leading + column : column * b.leading + k;
      sum += load(at_a, a.type, batch * a.batch_stride + left) *
             load(at_b, b.type, batch * b.batch_stride + right);
    }
    sum *= alpha * scale(descriptor.scale_a, descriptor.mode_a, row) *
           scale(descriptor.scale_b, descriptor.mode_b, column);
    if (beta != 0) {
      sum += beta * load(at_c, c.type, batch * c.batch_stride + column * c.leading + row);
    }
    if (descriptor.epilogue == kEpilogueBias) sum += load(descriptor.bias, d.type, row);
    return sum;
  }
};

double number(const void* data, int type) {
  if (data == nullptr) return 0;
  return type == kReal64      ? at<double>(data, 0)
         : type == kInteger32 ? at<int32_t>(data, 0)
                              : at<float>(data, 0);
}

}  // namespace

extern "C" {

size_t cublasLtGetVersion() { return 130000; }
const char* cublasLtGetStatusString(BlasStatus) { return "an emulated status"; }
BlasStatus cublasLtCreate(BlasHandle* handle) { return *handle = new int(0), 0; }
BlasStatus cublasLtDestroy(BlasHandle handle) { return delete static_cast<int*>(handle), 0; }
BlasStatus cublasLtMatmulDescCreate(ProductDescriptor* made, int compute, int scale) {
  auto* descriptor = new Descriptor;
  descriptor->compute = compute, descriptor->scale = scale;
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
  const Call call{descriptor,
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
