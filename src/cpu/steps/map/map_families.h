// The families of pointwise steps: a tile program over blocks of rows and columns.
#pragma once

#include <span>
#include <vector>

#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

std::span<const Family> map_families();

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::MapStep& step);

}  // namespace redfuser::cpu
