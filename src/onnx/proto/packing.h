// Elements of fewer than 8 bits: several to a byte in files, the first in the low bits; one to a
// byte in memory.
#pragma once

#include <cstdint>
#include <string>

#include "redfuser/tensor.h"

namespace redfuser::onnx {

bool is_packed(DType dtype);
// Bytes of `count` elements in a file.
uint64_t stored_bytes(DType dtype, int64_t count);
// `bytes` holds stored_bytes(dtype, element_count(dims)).
Tensor unpacked(DType dtype, const Dims& dims, const uint8_t* bytes);
std::string packed(const Tensor& tensor);

}  // namespace redfuser::onnx
