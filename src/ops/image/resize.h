// Resize as an expression: an output element is a weighted sum of a few inputs around a position.
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

// Whether lower_resize has an expression for the node: positions that are quotients of integers
// (no region of interest, no antialiasing), and few taps. Requires the inferred `shape`.
bool resize_is_expression(const NodeView& view, const Shape& shape);
// Positions are exact: the quotient of two integers, whose floor and remainder are the first tap
// and the weight. Interpolation is separable, in fp32 for narrower floats.
ir::Expr lower_resize(LowerContext& context);

}  // namespace redfuser::ops
