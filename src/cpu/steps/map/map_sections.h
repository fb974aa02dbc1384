// Sections of a pointwise step: ranges of an axis in each of which the conditions of selections on
// that axis are known, as those of concatenated inputs are.
#pragma once

#include <span>
#include <vector>

#include "fuse/plan.h"

namespace redfuser::cpu {

// Positions [begin, end) of axis `axis` of the step.
struct MapSection {
  size_t axis;
  int64_t begin, end;
};

// The sections along one axis at these sizes, in order, which are all of it; empty where no
// selection depends on a position alone, or where there are too many.
std::vector<MapSection> map_sections(const fuse::MapStep& step, std::span<const int64_t> symbols);

}  // namespace redfuser::cpu
