// The kernels of reductions for each result: a thread, or a warp, for one, or tiles of rows and
// columns (src/device/contraction/contraction.cuh).
#pragma once

#include <string>
#include <vector>

#include "codegen/contraction/contraction_config.h"

namespace redfuser::codegen {

// As add_map, of one store: by tiles where these take less time by estimate. Returns what the other
// way answers, where a run decides the sizes that by points.
Offer add_reductions(StepBuilder& builder, const std::string& name,
                     const std::vector<ir::Expr>& axes, const Store& store,
                     const std::string& comment);
Offer generate_reduce(StepBuilder& builder, const fuse::ReduceStep& step);

}  // namespace redfuser::codegen
