// Which axes of a product are its batch.
#pragma once

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// The product with its outermost row or column axis in the batch, where only that makes matrices of
// the operands and of the result at `offset` as they lie: a transposed operand of several images
// times one matrix needs no copy then. The product as it is if that already fits, if nothing does,
// or if each product of the batch would be small.
fuse::ProductStep with_fitting_batch(StepBuilder& builder, const fuse::ProductStep& step,
                                     ir::Expr offset);

}  // namespace redfuser::codegen
