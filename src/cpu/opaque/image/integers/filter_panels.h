// Filters of 8-bit integers as the right factor of integer products, whose left one are the
// positions of an image: no lane of a vector is one of padding between lines.
#pragma once

#include <algorithm>
#include <vector>

#include "cpu/opaque/image/integers/integer_filters.h"

namespace redfuser::cpu {

class IntegerPanels {
 public:
  // w [filters, channels, taps...] of `groups` groups, for kernels with `positions`.
  IntegerPanels(const IntegerKernels& kernels, const Tensor& w, int64_t groups,
                const ChannelGroups& channels);

  int64_t count() const { return panels_; }  // of a group
  int64_t first(int64_t panel) const { return panel * columns_; }
  int64_t filters(int64_t panel) const { return std::min(columns_, filters_ - first(panel)); }
  const char* panel(int64_t group, int64_t number) const {
    return static_cast<const char*>(words_.data()) + (group * panels_ + number) * bytes_;
  }
  // Of the signed elements of a panel's filters.
  const int32_t* sums(int64_t group, int64_t number) const {
    return sums_.data() + (group * panels_ + number) * columns_;
  }

 private:
  int64_t columns_, filters_, panels_, bytes_;
  Tensor words_;
  std::vector<int32_t> sums_;
};

}  // namespace redfuser::cpu
