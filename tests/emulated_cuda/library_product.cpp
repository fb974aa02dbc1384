#include "emulated_cuda/library_product.h"

#include "cuda/cublaslt_api.h"
#include "emulated_cuda/formats.h"

namespace redfuser::emulated_cuda {
namespace {

using namespace redfuser::cuda;

template <class T>
T at(const void* data, int64_t i) {
  return static_cast<const T*>(data)[i];
}
double load(const void* data, int type, int64_t i) {
  switch (type) {
    case kReal64:
      return at<double>(data, i);
    case kReal16:
      return emulated::half_to_float(at<uint16_t>(data, i));
    case kRealBrain16:
      return emulated::bfloat_to_float(at<uint16_t>(data, i));
    case kInteger8:
      return at<int8_t>(data, i);
    case kInteger32:
      return at<int32_t>(data, i);
    case kReal8E4M3:
      return emulated::byte_to_float<4>(at<unsigned char>(data, i));
    case kReal8E5M2:
      return emulated::byte_to_float<5>(at<unsigned char>(data, i));
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
      static_cast<uint16_t*>(data)[i] = emulated::float_to_half(rounded);
      break;
    case kRealBrain16:
      static_cast<uint16_t*>(data)[i] = emulated::float_to_bfloat(rounded);
      break;
    case kInteger32:
      static_cast<int32_t*>(data)[i] = static_cast<int32_t>(static_cast<int64_t>(value));
      break;
    default:
      static_cast<float*>(data)[i] = rounded;
  }
}

}  // namespace

double LibraryProduct::scale(const void* scales, int mode, int64_t line) const {
  return scales == nullptr ? 1.0 : at<float>(scales, mode == kScaleLines ? line : 0);
}

void LibraryProduct::run() const {
  const auto terms = static_cast<int64_t>(descriptor.transposed_a ? a.rows : a.columns);
  for (int batch = 0; batch < d.batches; ++batch) {
    for (int64_t column = 0; column < static_cast<int64_t>(d.columns); ++column) {
      for (int64_t row = 0; row < static_cast<int64_t>(d.rows); ++row) {
        store(at_d, d.type, batch * d.batch_stride + column * d.leading + row,
              element(batch, row, column, terms));
      }
    }
  }
}

double LibraryProduct::element(int batch, int64_t row, int64_t column, int64_t terms) const {
  double sum = 0;
  for (int64_t k = 0; k < terms; ++k) {
    const int64_t left = descriptor.transposed_a ? row * a.leading + k : k * a.leading + row;
    const int64_t right = descriptor.transposed_b ? k * b.leading + column : column * b.leading + k;
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

}  // namespace redfuser::emulated_cuda
