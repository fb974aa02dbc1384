// Parts of boxes of images as expressions of elements (OpDef::element).
#pragma once

#include "ops/op_def.h"

namespace redfuser::ops {

// The mean or maximum of the samples of a part of a box; where their number is an attribute.
ir::Expr element_of_roi_align(LowerContext& context);
// The maximum over the image's elements that are in a part of a box; 0 of none.
ir::Expr element_of_max_roi_pool(LowerContext& context);

}  // namespace redfuser::ops
