// Columns to images, and convolutions whose taps are displaced by data, as expressions of elements
// (OpDef::element).
#pragma once

#include "ops/op_def.h"

namespace redfuser::ops {

// The columns' elements that lie on one of the image.
ir::Expr element_of_col2im(LowerContext& context);
// The sum over channels and taps of weights times bilinear samples; the image is zero around.
ir::Expr element_of_deform_conv(LowerContext& context);

}  // namespace redfuser::ops
