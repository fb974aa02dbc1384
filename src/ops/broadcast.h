// numpy broadcasting.
#pragma once

#include <span>
#include <vector>

#include "ops/op_def.h"

namespace redfuser::ops {

// The common shape; UserError naming the node if there is none.
std::vector<ir::Expr> broadcast_shapes(const NodeView& view, const std::vector<ir::Expr>& a,
                                       const std::vector<ir::Expr>& b);
// The index into an operand of shape `operand` for the element `index` of a result of shape
// `result`.
std::vector<ir::Expr> broadcast_index(ir::ExprPool& pool, std::span<const ir::Expr> operand,
                                      std::span<const ir::Expr> result,
                                      std::span<const ir::Expr> index);

}  // namespace redfuser::ops
