// Which axes of a product are its batch, its rows and its columns.
#pragma once

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// Moves the outermost row or column axis to the batch if the operands and the result at `offset`
// are matrices in memory only then: for example a transposed operand of several images times one
// matrix needs no copy. Returns the product unchanged if it already fits, if no axis helps, or if
// each product of the batch would be small.
fuse::ProductStep with_fitting_batch(StepBuilder& builder, const fuse::ProductStep& step,
                                     ir::Expr offset);

// The transposed product where the result at `offset` has adjacent elements along the rows: what a
// value whose channels come last is made of. Products of several right operands stay.
fuse::ProductStep with_adjacent_columns(ir::ExprPool& pool, const fuse::ProductStep& step,
                                        ir::Expr offset);

// Whether the right operands are consecutive columns of one matrix.
bool have_adjacent_columns(ir::ExprPool& pool, const std::vector<ProductCall>& calls);

}  // namespace redfuser::codegen
