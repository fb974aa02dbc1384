// Filters of 8-bit integers as the words of dot products along a channel's lines.
#pragma once

#include <span>
#include <vector>

#include "cpu/simd/integers/byte_filter.h"
#include "redfuser/tensor.h"

namespace redfuser::cpu {

// The taps of a kernel [lines][columns] in groups of up to `size` along a line.
struct TapGroups {
  int64_t lines = 1, columns = 1, size = 1;

  int64_t across() const { return (columns + size - 1) / size; }
  int64_t count() const { return lines * across(); }
};

// Of a filter: words[k] multiplies the taps of group numbers[k].
struct FilterWords {
  std::span<const uint32_t> words;
  std::span<const int32_t> numbers;
  int32_t sum;  // of all weights
};

class ByteWords {
 public:
  // w [filters, taps...] less `zeros`, one or one for each filter. Weights less their zero point
  // that do not fit into a signed byte are sums of two words, as are pairs where the kernel
  // saturates.
  ByteWords(const Tensor& w, std::span<const int64_t> zeros, const TapGroups& groups,
            bool saturates);

  FilterWords filter(int64_t number) const;

 private:
  std::vector<size_t> begins_;
  std::vector<uint32_t> words_;
  std::vector<int32_t> numbers_, sums_;
};

}  // namespace redfuser::cpu
