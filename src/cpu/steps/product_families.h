// The families of matrix products with an epilogue: blocks of the result in parallel, or a general
// reduction.
#pragma once

#include <span>
#include <vector>

#include "cpu/steps/step_form.h"

namespace redfuser::cpu {

std::span<const Family> product_families();

std::vector<int64_t> symbols_of(const ir::Graph& graph, const fuse::ProductStep& step);

}  // namespace redfuser::cpu
