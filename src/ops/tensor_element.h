// Conversions between small constant tensors and constant expressions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/expr.h"

namespace redfuser::ops {

// Element `index` (row-major) as a Constant. Requires a numeric or Bool dtype and index in range.
ir::Expr tensor_element(ir::ExprPool& pool, const Tensor& tensor, int64_t index);
// All elements, in row-major order.
std::vector<ir::Expr> tensor_elements(ir::ExprPool& pool, const Tensor& tensor);
// The tensor of Constant expressions, converted to `dtype`.
Tensor tensor_of(DType dtype, Dims dims, std::span<const ir::Expr> elements);

}  // namespace redfuser::ops
