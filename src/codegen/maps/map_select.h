// Maps by groups of adjacent points, or by tiles and boxes that turn operands which lie across the
// results.
#pragma once

#include <vector>

#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/maps/map_forms.h"

namespace redfuser::codegen {

// Adds the kernels of a map for all sizes, each where it takes less time by estimate. The equations
// are their comment.
void add_least_map(StepBuilder& builder, MapStores map);
// The same of a step, with its offers.
void choose_map(StepBuilder& builder, const fuse::MapStep& step);
// As kernel_configs.
std::vector<Candidate> map_configs(StepBuilder& builder, const fuse::MapStep& step);
// By one of these choices.
void generate_map(StepBuilder& builder, const fuse::MapStep& step, const KernelConfig& choice);

}  // namespace redfuser::codegen
