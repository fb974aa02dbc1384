// The families of cascades: the streaming form with a whole row in registers, or tile by tile.
#pragma once

#include <span>
#include <vector>

#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

std::span<const Family> cascade_families();

// The numbers of the symbols that the sizes of a step depend on, sorted.
std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::CascadeStep& step);

}  // namespace redfuser::cpu
