// Values of quantized types: 4- and 8-bit integers, 16-bit integers, 8-bit floats.
#pragma once

#include "ops/op_def.h"

namespace redfuser::ops {

// Fails for a type that no value is quantized to.
void check_quantized(const NodeView& view, DType dtype);

// `value` (float32; a whole number where `dtype` is of integers) plus `zero` (null: none),
// saturated and cast to `dtype`. 8-bit floats have no zero point.
ir::Expr quantized(const NodeView& view, ir::Expr value, ir::Expr zero, DType dtype);

// Of a sum of products of quantized numbers, with the scales of both factors and the result's:
// saturate(round(sum · (a · b / result)) + zero), in float32.
struct Scales {
  ir::Expr a, b, result;
};
ir::Expr quantized_sum(const NodeView& view, ir::Expr sum, const Scales& scales, ir::Expr zero,
                       DType dtype);

// Fails for a constant scale with an element that is not a number, or with `divides` zero; the
// error names the tensor.
void check_scale(const NodeView& view, int input, bool divides);

}  // namespace redfuser::ops
