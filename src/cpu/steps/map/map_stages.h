// A pointwise step in stages. What an element computes of inputs at positions that are not its own,
// as a bilinear interpolation along one axis of the lines that one along another axis reads, is a
// function of those positions. Where several elements read the same position, the function's values
// may be computed once, as a value of the step's own.
#pragma once

#include "cpu/steps/map/map_plan.h"

namespace redfuser::cpu {

struct MapStages {
  ir::ExprPool pool;                  // of the steps
  std::vector<fuse::StepKind> steps;  // in order; the last one writes the outputs
  std::vector<InnerValue> inner;      // that the others write
};

// The step with `most` divisions of a step into two or more, or with as many as there are; without
// any, `inner` is empty. Requires fixed sizes.
std::unique_ptr<MapStages> map_stages(const StepForm& form, int most);

// A pointwise step stage by stage.
class StagedMapPlan final : public StepPlan {
 public:
  // Each stage with its fastest tile.
  StagedMapPlan(const StepForm& form, const MapStages& stages);

  double time(int threads) const;
  void run(RunContext& context) const override;
  int64_t inner_bytes() const override;

 private:
  std::vector<InnerValue> inner_;
  std::vector<std::unique_ptr<MapPlan>> parts_;
};

}  // namespace redfuser::cpu
