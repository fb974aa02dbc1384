// Configurations of column kernels, with their times by estimate.
#pragma once

#include <vector>

#include "codegen/columns/column_kernel.h"

namespace redfuser::codegen {

// What of a form decides how fast a configuration is.
struct ColumnFacts {
  int element_bytes = 4;  // that the fold reads of a row's element
  int written_bytes = 0;  // that outputs take of it
  int smallest = 4;       // bytes of the narrowest element
  int64_t state_bytes = 0;
  int phases = 1;
  bool maps_back = false;
  int beside = 1;          // ColumnForm::beside
  bool scattered = false;  // offsets of elements are no multiples of one stride
  int shared = 0;          // reads that all rows have in common
};
ColumnFacts column_facts(StepBuilder& builder, const ColumnForm& form);

// Microseconds by estimate for `outers` groups of `columns` adjacent rows of `length` elements.
double column_time(const Target& target, const ColumnFacts& facts, const ColumnConfig& config,
                   int64_t outers, int64_t columns, int64_t length);
// Those with room for such rows.
std::vector<ColumnConfig> column_tiles(const Target& target, const ColumnFacts& facts,
                                       int64_t outers, int64_t columns, int64_t length);

}  // namespace redfuser::codegen
