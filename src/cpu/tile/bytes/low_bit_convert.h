// Between the codes of low-bit floats (in I64 registers) and float.
#pragma once

#include "cpu/simd/kernel_table.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

// The values of all 256 codes. InternalError unless is_low_bit_float(dtype), like the others.
const float* code_values(DType dtype);
// InternalError unless is_low_bit_float(dtype).
ConvertFn decoder_of(DType dtype);  // I64 -> F32
ConvertFn encoder_of(DType dtype);  // F32 -> I64

}  // namespace redfuser::cpu
