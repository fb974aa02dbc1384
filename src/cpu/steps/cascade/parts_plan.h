// Runs a cascade part by part.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cpu/steps/cascade/cascade_parts.h"

namespace redfuser::cpu {

class PartsPlan final : public StepPlan {
 public:
  // Each step by the fastest of `families`, which are those of cascades, or of pointwise steps.
  // `parts` are of `form`.
  PartsPlan(const StepForm& form, std::shared_ptr<const CascadeParts> parts,
            std::span<const Family> families);

  // Microseconds; infinite where a step has no family.
  double time() const { return time_; }
  void run(RunContext& context) const override;
  int64_t inner_bytes() const override;

 private:
  std::shared_ptr<const CascadeParts> parts_;
  std::vector<std::shared_ptr<const StepPlan>> plans_;
  double time_ = 0;
};

}  // namespace redfuser::cpu
