// Filters of 8-bit integers as the left factor of integer products.
#pragma once

#include <vector>

#include "cpu/simd/integers/integer_gemm.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

// The channels of an image in groups of `size`, as many as the product kernels take together. The
// last group is filled up. Element (group, tap, channel of the group) of a filter is its number
// (group · taps + tap) · size + channel of the depth.
struct ChannelGroups {
  int64_t channels = 1, taps = 1, size = 1;

  int64_t count() const { return (channels + size - 1) / size; }
  int64_t depth() const { return count() * size * taps; }
  // Of the element of `channel` for tap 0; those of other taps lie `size` apart.
  int64_t first(int64_t channel) const { return channel / size * taps * size + channel % size; }
};

// In groups as the kernels take them, unless filling up the last one is dear.
ChannelGroups channel_groups(const IntegerKernels& kernels, int64_t channels, int64_t taps);

// The elements of w [filters, channels, taps...] in the order of the depth. Channels that fill up
// the last group are `fill`.
std::vector<uint8_t> by_channel_groups(const Tensor& w, const ChannelGroups& groups, uint8_t fill);

class PackedFilters {
 public:
  // w [filters, channels, taps...]. Constant filters are split for kernels of pairs of bytes, where
  // that takes less time than others.
  PackedFilters(const Tensor& w, int64_t channels, int64_t taps, bool constant);

  const IntegerKernels& kernels() const { return *kernels_; }
  const ChannelGroups& groups() const { return groups_; }
  const char* row(int64_t filter) const {
    return static_cast<const char*>(rows_.data()) + filter * kernels_->row_bytes(groups_.depth());
  }
  // Of a filter, and those that follow.
  IntegerRests rests(int64_t filter) const {
    if (begins_.empty()) return {};
    return {begins_.data() + filter, split_groups_.data(), split_words_.data()};
  }
  // Of the moved elements of a filter, and so many filters that follow.
  const int32_t* sums(int64_t filter) const { return sums_.data() + filter; }
  int64_t offset() const { return offset_; }  // by which they are moved

 private:
  void pack(const Tensor& w, const IntegerKernels& kernels, int64_t channels, int64_t taps);
  // False where too much was split.
  bool split();

  const IntegerKernels* kernels_ = nullptr;
  ChannelGroups groups_;
  int64_t offset_ = 0;
  Tensor rows_;
  std::vector<int64_t> begins_;
  std::vector<int32_t> split_groups_;
  std::vector<uint32_t> split_words_;
  std::vector<int32_t> sums_;
};

}  // namespace redfuser::cpu
