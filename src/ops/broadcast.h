// numpy broadcasting.
#pragma once

#include <span>
#include <vector>

#include "ops/op_def.h"

namespace redfuser::ops {

// numpy broadcasting of two shapes; names the node in its error.
std::vector<ir::Expr> broadcast_shapes(const NodeView& view, const std::vector<ir::Expr>& a,
                                       const std::vector<ir::Expr>& b);
// Where an operand of shape `operand` is read for the element `index` of a result of shape
// `result`.
std::vector<ir::Expr> broadcast_index(ir::ExprPool& pool, std::span<const ir::Expr> operand,
                                      std::span<const ir::Expr> result,
                                      std::span<const ir::Expr> index);

}  // namespace redfuser::ops
