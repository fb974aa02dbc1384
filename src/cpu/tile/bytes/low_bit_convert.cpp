#include "cpu/tile/bytes/low_bit_convert.h"

#include <array>

#include "base/error.h"
#include "base/low_bit.h"

namespace redfuser::cpu {
namespace {

struct CodeValues {
  explicit CodeValues(DType dtype) {
    for (size_t code = 0; code < of.size(); ++code) {
      of[code] = low_bit_value(dtype, static_cast<uint8_t>(code));
    }
  }
  std::array<float, 256> of;
};

template <DType dtype>
const float* values() {
  static const CodeValues values(dtype);
  return values.of.data();
}

template <DType dtype>
void decode(int64_t count, void* out, const void* in) {
  const float* values_of_type = values<dtype>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t code = static_cast<const int64_t*>(in)[i];
    static_cast<float*>(out)[i] = values_of_type[static_cast<uint8_t>(code)];
  }
}

template <DType dtype>
void encode(int64_t count, void* out, const void* in) {
  for (int64_t i = 0; i < count; ++i) {
    static_cast<int64_t*>(out)[i] = low_bit_code(dtype, static_cast<const float*>(in)[i]);
  }
}

struct Conversions {
  ConvertFn decode, encode;
  const float* (*values)();
};

template <DType dtype>
constexpr Conversions kConversions{decode<dtype>, encode<dtype>, values<dtype>};

const Conversions& conversions_of(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3FN:
      return kConversions<DType::Float8E4M3FN>;
    case DType::Float8E4M3FNUZ:
      return kConversions<DType::Float8E4M3FNUZ>;
    case DType::Float8E5M2:
      return kConversions<DType::Float8E5M2>;
    case DType::Float8E5M2FNUZ:
      return kConversions<DType::Float8E5M2FNUZ>;
    case DType::Float8E8M0:
      return kConversions<DType::Float8E8M0>;
    case DType::Float4E2M1:
      return kConversions<DType::Float4E2M1>;
    default:
      internal_error("{} is no low-bit floating type", name_of(dtype));
  }
}

}  // namespace

ConvertFn decoder_of(DType dtype) { return conversions_of(dtype).decode; }
const float* code_values(DType dtype) { return conversions_of(dtype).values(); }
ConvertFn encoder_of(DType dtype) { return conversions_of(dtype).encode; }

}  // namespace redfuser::cpu
