// Checks that the products of matrices share.
#pragma once

#include <string>

#include "ops/op_def.h"

namespace redfuser::ops {

// Inputs 0 and 1 are numbers of one dtype.
void check_factors(const NodeView& view);

// "inner sizes of [m, k] and [k, n]" of input 0 and input `right`, for errors.
std::string factors_text(const NodeView& view, int right);

// Of two sizes that are equal: a constant if one is.
ir::Expr inner_size(ir::Expr a, ir::Expr b);

}  // namespace redfuser::ops
