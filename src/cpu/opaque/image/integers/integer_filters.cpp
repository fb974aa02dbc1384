#include "cpu/opaque/image/integers/integer_filters.h"

#include <cstring>

#include "cpu/simd/integers/byte_pairs.h"
#include "redfuser/memory_limit.h"

namespace redfuser::cpu {

ChannelGroups channel_groups(const IntegerKernels& kernels, int64_t channels, int64_t taps) {
  ChannelGroups groups{channels, taps, 1};
  const int64_t size = kernels.depth_multiple;
  const int64_t filled = (channels + size - 1) / size * size;
  // Where several words are taken together, their products take less time than columns do.
  const bool words = size > kernels.group();
  const bool fits = words ? filled <= 4 * channels : 3 * filled <= 4 * channels;
  if (kernels.interleave != nullptr && fits) groups.size = size;
  return groups;
}

std::vector<uint8_t> by_channel_groups(const Tensor& w, const ChannelGroups& groups, uint8_t fill) {
  const int64_t filters = w.dims()[0], depth = groups.depth();
  std::vector<uint8_t> ordered(static_cast<size_t>(filters * depth), fill);
  const auto* from = static_cast<const uint8_t*>(w.data());
  for (int64_t f = 0; f < filters; ++f) {
    for (int64_t channel = 0; channel < groups.channels; ++channel) {
      uint8_t* to = ordered.data() + f * depth + groups.first(channel);
      for (int64_t tap = 0; tap < groups.taps; ++tap) to[tap * groups.size] = *from++;
    }
  }
  return ordered;
}

namespace {

// The best of this machine, or others that take so few channels together: the columns of several
// taps would be gathered.
const IntegerKernels& kernels_for(int64_t channels, int64_t taps) {
  for (const IntegerKernels* each : cpu::kernels().integer) {
    const bool groups = each != nullptr && channel_groups(*each, channels, taps).size > 1;
    if (taps > 1 && groups) return *each;
  }
  return integer_kernels();
}

}  // namespace

PackedFilters::PackedFilters(const Tensor& w, int64_t channels, int64_t taps, bool constant) {
  const IntegerKernels* pairs = cpu::kernels().byte_pairs;
  if (constant && pairs != nullptr) {
    pack(w, *pairs, channels, taps);
    if (split()) return;
    begins_.clear(), split_groups_.clear(), split_words_.clear();
  }
  pack(w, kernels_for(channels, taps), channels, taps);
}

void PackedFilters::pack(const Tensor& w, const IntegerKernels& kernels, int64_t channels,
                         int64_t taps) {
  kernels_ = &kernels;
  groups_ = channel_groups(kernels, channels, taps);
  offset_ = kernels.left_offset(w.dtype() == DType::Int8, true);
  const int64_t depth = groups_.depth(), filters = w.dims()[0];
  // They stay for later runs where they are constant, and so count for none.
  const MemoryLimit none(0);
  // Channels that fill up the last group become 0 by the move.
  const std::vector<uint8_t> ordered =
      by_channel_groups(w, groups_, static_cast<uint8_t>(-offset_));
  rows_ = Tensor(DType::UInt8, {filters * kernels.row_bytes(depth)});
  sums_.resize(static_cast<size_t>(filters));
  IntegerPackArgs args;
  args.matrix = {ordered.data(), static_cast<uint8_t>(w.dtype()), depth, 1, nullptr, nullptr};
  args.count = filters;
  args.depth = depth;
  args.offset = offset_;
  args.out = rows_.mutable_data();
  args.sums = sums_.data();
  kernels.pack_rows(args);
}

bool PackedFilters::split() {
  const auto filters = static_cast<int64_t>(sums_.size());
  const int64_t count = kernels_->row_bytes(groups_.depth()) / 4;
  char* at = static_cast<char*>(rows_.mutable_data());
  for (int64_t f = 0; f < filters; ++f) {
    begins_.push_back(static_cast<int64_t>(split_words_.size()));
    for (int64_t group = 0; group < count; ++group, at += sizeof(uint32_t)) {
      uint32_t word;
      std::memcpy(&word, at, sizeof(word));
      const uint32_t rest = split_pairs(word);
      if (rest == 0) continue;
      std::memcpy(at, &word, sizeof(word));
      split_groups_.push_back(static_cast<int32_t>(group));
      split_words_.push_back(rest);
    }
  }
  begins_.push_back(static_cast<int64_t>(split_words_.size()));
  return static_cast<double>(split_words_.size()) <=
         kMostSplit * static_cast<double>(filters * count);
}

}  // namespace redfuser::cpu
