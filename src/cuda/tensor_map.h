// Descriptors of tensors in GPU memory for the TMA of sm_90.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/driver_api.h"

namespace redfuser::cuda {

// A tensor of 16-bit elements for TMA: dimensions innermost first, 128-byte swizzle, zeros outside.
struct TensorLayout {
  bool bfloat = false;
  std::vector<uint64_t> dims;
  std::vector<uint64_t> strides;  // bytes, of every dimension but the first; multiples of 16
  std::vector<unsigned> box;
};
// `name` appears in errors.
TensorMap encode_tensor_map(const TensorLayout& layout, DevicePointer address,
                            const std::string& name);

}  // namespace redfuser::cuda
