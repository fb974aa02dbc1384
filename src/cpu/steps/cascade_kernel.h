// Cascades as tile programs.
#pragma once

#include <memory>

#include "cpu/step.h"

namespace redfuser::cpu {

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::CascadeStep& step);

}  // namespace redfuser::cpu
