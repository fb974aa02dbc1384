// The filters of a convolution as the window kernels read them.
#pragma once

#include "cpu/convolution/convolution_plan.h"
#include "cpu/simd/kernel_table.h"

namespace redfuser::cpu {

// Panels of two vectors of filters for each group, the last of one to three: the weights of a tap
// lie side by side, padded with zeros to whole vectors.
class FilterPanels {
 public:
  explicit FilterPanels(const ConvolutionForm& form);

  int64_t count() const { return panels_; }  // of a group
  int64_t first(int64_t panel) const { return panel * 2 * lanes_; }
  int64_t filters(int64_t panel) const {
    return panel + 1 == panels_ ? filters_ - first(panel) : 2 * lanes_;
  }
  // Elements of a row.
  int64_t width(int64_t panel) const { return (filters(panel) + lanes_ - 1) / lanes_ * lanes_; }
  int64_t most_filters() const { return std::max(filters(0), filters(panels_ - 1)); }
  int64_t lanes() const { return lanes_; }

  // Where the weights of a panel begin, in elements, and where its biases do.
  int64_t weights_at(int64_t group, int64_t panel) const {
    return group * row_ * taps_ + first(panel) * taps_;
  }
  int64_t bias_at(int64_t group, int64_t panel) const { return group * row_ + first(panel); }

  Tensor pack_weights(const void* weights, ThreadPool* pool) const;
  Tensor pack_bias(const void* bias) const;  // zeros for null

 private:
  DType dtype_;
  int64_t groups_, filters_, taps_, lanes_, panels_;
  int64_t row_;  // elements of a group's filters with the padding
};

}  // namespace redfuser::cpu
