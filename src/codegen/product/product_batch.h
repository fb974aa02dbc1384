// Which axes of a product are its batch.
#pragma once

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// Moves the outermost row or column axis to the batch if the operands and the result at `offset`
// are matrices in memory only then: for example a transposed operand of several images times one
// matrix needs no copy. Returns the product unchanged if it already fits, if no axis helps, or if
// each product of the batch would be small.
fuse::ProductStep with_fitting_batch(StepBuilder& builder, const fuse::ProductStep& step,
                                     ir::Expr offset);

// Whether the right operands are consecutive columns of one matrix.
bool have_adjacent_columns(ir::ExprPool& pool, const std::vector<ProductCall>& calls);

}  // namespace redfuser::codegen
