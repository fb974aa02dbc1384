// Kernels whose plans serve runs of growing sizes.
#pragma once

#include <memory>

#include "cpu/growing/growing_sizes.h"
#include "cpu/step.h"

namespace redfuser::cpu {

class GrowingKernel {
 public:
  virtual ~GrowingKernel() = default;
  // A plan for all lengths up to the greatest, at least 1. It reads and writes memory of
  // GrowingSizes::memory_of, and of an append the new positions alone. Null if there is none.
  virtual std::shared_ptr<const StepPlan> growing_plan(const GrowingSizes& sizes,
                                                       int threads) const = 0;
};

}  // namespace redfuser::cpu
