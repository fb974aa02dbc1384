// Depthwise convolution, as a filter over rows.
#pragma once

#include <algorithm>

#include "cpu/opaque/image/conv.h"

namespace redfuser::cpu {

// convolve() where every group has one channel (groups == channels): no matrix product is left.
template <typename T>
void convolve_depthwise(const ConvShape& shape, const T* x, const T* w, const T* bias,
                        SumsTarget& sums, ThreadPool& pool);

// The same of bytes, int8 or uint8, less a zero point: sums of float32.
void convolve_depthwise_bytes(const ConvShape& shape, const Tensor& x, int64_t zero, const float* w,
                              SumsTarget& sums, ThreadPool& pool);

// The number of tasks for the planes of all images.
inline int64_t depthwise_tasks(int64_t planes, int64_t threads) {
  return std::min(planes, 8 * threads);
}

// Of a block of several filters that it hands to the target, each with all positions.
inline constexpr int64_t kDepthwiseSums = 4096;

}  // namespace redfuser::cpu
