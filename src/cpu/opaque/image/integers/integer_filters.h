// Filters of 8-bit integers as the left factor of integer products.
#pragma once

#include <vector>

#include "cpu/simd/integers/integer_gemm.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

// The channels of an image in groups of `group`, as many as the product kernels take together. The
// last group is filled up. Element (group, tap, channel of the group) of a filter is its number
// (group · taps + tap) · size + channel of the depth.
struct ChannelGroups {
  int64_t channels = 1, taps = 1, size = 1;

  int64_t count() const { return (channels + size - 1) / size; }
  int64_t depth() const { return count() * size * taps; }
  // Of the element of `channel` for tap 0; those of other taps lie `size` apart.
  int64_t first(int64_t channel) const { return channel / size * taps * size + channel % size; }
};

class PackedFilters {
 public:
  // w [filters, channels, taps...]
  PackedFilters(const Tensor& w, const ChannelGroups& groups);

  const char* row(int64_t filter) const {
    return static_cast<const char*>(rows_.data()) + filter * integer_kernels().row_bytes(depth_);
  }
  // Of the moved elements of a filter, and so many filters that follow.
  const int32_t* sums(int64_t filter) const { return sums_.data() + filter; }
  int64_t offset() const { return offset_; }  // by which they are moved

 private:
  int64_t depth_, offset_;
  Tensor rows_;
  std::vector<int32_t> sums_;
};

}  // namespace redfuser::cpu
