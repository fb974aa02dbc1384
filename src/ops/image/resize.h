// The attributes and inputs of Resize and Upsample.
#pragma once

#include <optional>
#include <vector>

#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::ops {

// The axes that Resize or Upsample changes, in the order of its scales or sizes.
std::vector<int> resized_axes(const NodeView& view);
// Whether the output's sizes come from the input `sizes` instead of `scales`.
bool resized_by_sizes(const NodeView& view);
// The scales as expressions; nullopt if they are known at run time only.
std::optional<std::vector<ir::Expr>> resize_scales(const NodeView& view);

}  // namespace redfuser::ops
