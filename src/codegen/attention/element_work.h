// What estimates of attention kernels count of a form.
#pragma once

#include <algorithm>

#include "codegen/attention/attention.h"
#include "codegen/core/kernel_config.h"

namespace redfuser::codegen {

// Of one pair of a query and a key, beside the products.
struct ElementWork {
  double scalars = 0;   // operations
  double specials = 0;  // exponentials and the like
  double reads = 0;     // elements of tensors that differ by key
};
ElementWork element_work(const AttentionSpec& form);
inline constexpr ElementWork kSoftmaxWork = {7, 1, 1};

// What each operation and read takes beyond those of a plain softmax, of what the softmax takes.
struct ElementCost {
  double scalar, special, read;

  double of(const ElementWork& work) const {
    return 1 + std::max(0.0, scalar * (work.scalars - kSoftmaxWork.scalars) +
                                 special * (work.specials - kSoftmaxWork.specials) +
                                 read * (work.reads - kSoftmaxWork.reads));
  }
};

// Columns of a key and its value that are loaded one by one, as they are not adjacent in memory.
double scattered_columns(ir::ExprPool& pool, const AttentionSpec& form);
// What a multiprocessor takes for such an element, in cycles: 64 terms of 512 keys that are
// adjacent by key, for 96 heads of 512 rows, took 160 us on an H200 where 50 were estimated
// without.
inline constexpr double kScatteredCycles = 1.5;

// The machine's time of an instruction, of that of the GPU whose times the estimates are fitted to.
inline double pace(const select::Machine& machine) {
  constexpr double kFittedClock = 1980;  // MHz
  return kFittedClock / machine.clock;
}

// Tiles of `keys` keys that a tile of `rows` rows visits, on average over few of the row tiles.
double mean_visits(ir::ExprPool& pool, const AttentionSpec& form, int rows, int keys,
                   const KnownSizes& sizes);

}  // namespace redfuser::codegen
