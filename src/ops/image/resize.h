// The attributes and inputs of Resize and Upsample.
#pragma once

#include <optional>
#include <vector>

#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::ops {

// The axes that Resize or Upsample changes, in the order of its scales or sizes.
std::vector<int> resized_axes(const NodeView& view);
// Whether the sizes input gives the output's sizes, not scales.
bool resized_by_sizes(const NodeView& view);
// The scales as expressions; null if only the run knows them.
std::optional<std::vector<ir::Expr>> resize_scales(const NodeView& view);

}  // namespace redfuser::ops
