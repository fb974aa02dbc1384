// Sums and maxima of weighted rows, as samples between the elements of an image are.
#pragma once

#include <cstdint>

namespace redfuser::cpu {

// Elements of rows are read and written up to the next multiple of this.
inline constexpr int64_t kWeightedColumns = 16;

// out[c] = out[c] ⊕ (⊕ over `count` terms k of weights[k] · from[offsets[k] + c]), where ⊕ is the
// sum or, with `maximum`, the maximum, which is NaN where a term is.
struct WeightedRowsArgs {
  bool maximum = false;
  int64_t columns = 0, count = 0;
  const int64_t* offsets = nullptr;
  const void* weights = nullptr;
  const void* from = nullptr;
  void* out = nullptr;
};

}  // namespace redfuser::cpu
