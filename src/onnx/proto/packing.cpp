#include "onnx/proto/packing.h"

namespace redfuser::onnx {

bool is_packed(DType dtype) { return bits_of(dtype) > 0 && bits_of(dtype) < 8; }

uint64_t stored_bytes(DType dtype, int64_t count) {
  const auto elements = static_cast<uint64_t>(count);
  if (!is_packed(dtype)) return elements * size_of(dtype);
  const auto per_byte = static_cast<uint64_t>(8 / bits_of(dtype));
  return (elements + per_byte - 1) / per_byte;
}

Tensor unpacked(DType dtype, const Dims& dims, const uint8_t* bytes) {
  Tensor tensor(dtype, dims);
  const int bits = bits_of(dtype), per_byte = 8 / bits, mask = (1 << bits) - 1;
  const bool is_signed = dtype == DType::Int4 || dtype == DType::Int2;
  const int sign = is_signed ? 1 << (bits - 1) : 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int value = (bytes[i / per_byte] >> (i % per_byte * bits)) & mask;
    tensor.as<int8_t>()[i] = static_cast<int8_t>((value ^ sign) - sign);
  }
  return tensor;
}

std::string packed(const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  std::string bytes(stored_bytes(dtype, tensor.size()), '\0');
  const int bits = bits_of(dtype), per_byte = 8 / bits, mask = (1 << bits) - 1;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    char& byte = bytes[static_cast<size_t>(i / per_byte)];
    const int value = tensor.as<uint8_t>()[i] & mask;
    byte = static_cast<char>(static_cast<uint8_t>(byte) | value << (i % per_byte * bits));
  }
  return bytes;
}

}  // namespace redfuser::onnx
