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
  // Of images [image, spatial dimensions, channel] of which copies take windows (im2col): along
  // every spatial dimension, innermost first, the places of the first elements of windows. They go
  // from `lower` to the size less 1 plus `upper`, in steps. The box has two edges: channels, and
  // windows of a copy. Empty: copies take boxes.
  std::vector<int> lower, upper;
  std::vector<unsigned> steps;
};
// `name` appears in errors.
TensorMap encode_tensor_map(const TensorLayout& layout, DevicePointer address,
                            const std::string& name);

}  // namespace redfuser::cuda
