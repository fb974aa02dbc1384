// Resize as an expression: an output element is a weighted sum of a few inputs around a position.
#pragma once

#include "ops/op_def.h"
#include "ops/sizes.h"

namespace redfuser::ops {

// Whether lower_resize has an expression for the node: positions that are quotients of integers
// (no region of interest, no antialiasing), and few taps. Requires the inferred `shape`.
bool resize_is_expression(const NodeView& view, const Shape& shape);
// Positions are exact: the quotient of two integers, whose floor and remainder are the first tap
// and the weight. Interpolation is separable, in fp32 for narrower floats.
ir::Expr lower_resize(LowerContext& context);

}  // namespace redfuser::ops
