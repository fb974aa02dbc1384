// Configurations of products whose rows are reduced where they are made, and their times.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/row_product/row_product_form.h"

namespace redfuser::codegen {

inline constexpr const char* kRowProductFamily = "row_product";

struct RowProductConfig {
  int rows = 128;    // of a tile: 64 or 128
  int blocks = 1;    // of a cluster, which divide the contracted axis
  int resident = 1;  // blocks of a multiprocessor, which divide its memory for loads in flight

  Parameters parameters() const {
    return {{"rows", rows}, {"blocks", blocks}, {"resident", resident}};
  }
  static RowProductConfig of(const KernelConfig& choice);
};

// Lanes of a warp that have a row: the fewest whose elements fit, unless rows would be missing.
int lanes_of(const RowProductForm& form, const RowProductConfig& config, int width);
// Dynamic shared memory of a block.
int row_product_shared_bytes(const RowProductForm& form, const RowProductConfig& config);

// All that fit, the fastest by estimate first, for `count` rows and a contracted axis of `depth`.
std::vector<Candidate> row_product_choices(StepBuilder& builder, const RowProductForm& form,
                                           int64_t count, int64_t depth);

}  // namespace redfuser::codegen
