// Scatters that combine many updates: each element folds a list of those that are meant for it
// (src/device/scatter/lists.cuh).
#pragma once

#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// As in the header: threads of a block, and updates of the longest list that one thread folds.
inline constexpr int kScatterThreads = 256, kScatterLong = 1024;

struct CombinedScatter {
  ir::ValueId value;              // the result
  DType dtype, sum;               // of its elements, and of sums
  bool any_order;                 // the order of updates does not change a bit of the sum
  std::vector<ir::Expr> updates;  // axes that number the updates
  std::vector<ir::Expr> slots;    // axes of the result's elements that updates are meant for
  std::vector<ir::Expr> columns;  // its other axes, which are the last ones
  std::vector<ir::Expr> target;   // of an update: a place for each axis of the slots
  ir::Expr update;                // its element, over updates and columns
  ir::Expr identity;
  ir::ExprOp operation;
  ir::Expr data;  // over slots and columns
};

// Adds the kernels.
void add_scatter_lists(StepBuilder& builder, const CombinedScatter& scatter);

// Microseconds by estimate; sizes that are not known count as 1.
double scatter_lists_time(const StepBuilder& builder, const CombinedScatter& scatter,
                          const KnownSizes& sizes);

}  // namespace redfuser::codegen
