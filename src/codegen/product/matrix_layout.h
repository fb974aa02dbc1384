// How the elements of a tensor lie as a matrix of rows and columns, for products.
#pragma once

#include <optional>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// offset + batch · b + row · r + column · c, in elements.
struct MatrixLayout {
  ir::Expr offset, batch, row, column;
};

// The layout of an offset over these axes, each list walked as one; nullopt where they do not
// collapse or a stride is negative.
std::optional<MatrixLayout> matrix_layout(ir::ExprPool& pool, ir::Expr offset,
                                          const std::vector<ir::Expr>& batch,
                                          const std::vector<ir::Expr>& rows,
                                          const std::vector<ir::Expr>& columns);

// The library wants one stride of 1, and the other at least as large as the extent it passes.
// Strides of a single row or column, which do not matter, are set to fit.
bool library_takes(ir::ExprPool& pool, MatrixLayout& layout, ir::Expr rows, ir::Expr columns);

}  // namespace redfuser::codegen
