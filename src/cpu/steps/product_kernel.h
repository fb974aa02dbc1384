// Matrix products with an epilogue.
#pragma once

#include <memory>

#include "cpu/step.h"

namespace redfuser::cpu {

std::unique_ptr<Kernel> make_kernel(const ir::Graph& graph, const fuse::ProductStep& step);

}  // namespace redfuser::cpu
