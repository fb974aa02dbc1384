// Sums of products as products of matrices.
#pragma once

#include <optional>

#include "reference/expressions/reductions.h"

namespace redfuser::reference {

struct MatrixProduct {
  DType dtype;
  ir::Expr left, right;
  // Free axes of both factors, of the left and of the right one alone; those that are summed.
  std::vector<ir::Expr> batch, rows, columns, inner;
};

// nullopt unless the body is a product and one factor lacks a free axis of the other.
std::optional<MatrixProduct> as_product(ir::ExprPool& pool, const Reducing& reducing);
// A tensor of the sizes of batch, rows and columns.
Tensor multiplied(const MatrixProduct& product, const Source& source);

}  // namespace redfuser::reference
