// Configurations of the kernel of integer products, and their times.
#pragma once

#include <vector>

#include "codegen/core/kernel_config.h"
#include "codegen/integer_product/integer_form.h"

namespace redfuser::codegen {

inline constexpr const char* kIntegerProductFamily = "product_integer";

// A tile of each product, and how warps divide it; as IntegerTile of
// src/device/product/integer_product.cuh.
struct IntegerShape {
  int rows, columns;
  int row_warps, column_warps, depth_warps;
  int depth, stages;

  int threads() const { return 32 * row_warps * column_warps * depth_warps; }
};

struct IntegerConfig {
  int rows = 128, columns = 128;  // of the tile
  int blocks = 1;                 // of a cluster, which divide the contracted axis

  Parameters parameters() const {
    return {{"rows", rows}, {"columns", columns}, {"blocks", blocks}};
  }
  static IntegerConfig of(const KernelConfig& choice);
  // InternalError for a tile that does not exist.
  const IntegerShape& shape() const;
};

// Dynamic shared memory of a block.
int integer_shared_bytes(const IntegerForm& form, const IntegerConfig& config);

// Blocks that a multiprocessor runs at once, by their registers and shared memory.
int integer_resident_blocks(const IntegerForm& form, const IntegerConfig& config,
                            const Target& target);

struct IntegerSizes {
  double batch, m, n, k;
  int a_width, b_width;  // bytes of a copy
};
// Sizes that are not known are nominal.
IntegerSizes integer_sizes(const IntegerForm& form, const KnownSizes& sizes);

// Microseconds at these sizes, its launch included.
double integer_time(const IntegerForm& form, const IntegerConfig& config, const IntegerSizes& sizes,
                    const Target& target);
// All configurations that fit, the fastest first by that estimate.
std::vector<Candidate> integer_choices(const IntegerForm& form, const IntegerSizes& sizes,
                                       const Target& target);

}  // namespace redfuser::codegen
