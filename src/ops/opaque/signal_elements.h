// Elements of transforms of signals and of matrices as expressions (OpDef::element).
#pragma once

#include "ops/op_def.h"

namespace redfuser::ops {

// The axis that a DFT transforms; NeedsValues where only a run knows it.
int dft_axis(const NodeView& context);

// Sums over the points of a signal.
ir::Expr element_of_dft(LowerContext& context);
ir::Expr element_of_stft(LowerContext& context);
// Of matrices of up to 4 rows, by Laplace's expansion.
ir::Expr element_of_det(LowerContext& context);

}  // namespace redfuser::ops
