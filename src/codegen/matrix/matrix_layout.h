// The memory layout of a tensor as a matrix of rows and columns, for products.
#pragma once

#include <optional>
#include <vector>

#include "codegen/core/step_builder.h"

namespace redfuser::codegen {

// offset + batch · b + row · r + column · c, in elements.
struct MatrixLayout {
  ir::Expr offset, batch, row, column;
};

// The layout of an offset over these axes, each list merged into one; nullopt if a list does not
// merge or a stride is negative.
std::optional<MatrixLayout> matrix_layout(ir::ExprPool& pool, ir::Expr offset,
                                          const std::vector<ir::Expr>& batch,
                                          const std::vector<ir::Expr>& rows,
                                          const std::vector<ir::Expr>& columns);

// Whether the library can address the layout: one stride is 1, the other at least the extent of the
// first. Strides of a single row or column have no effect and are set to fit.
bool library_takes(ir::ExprPool& pool, MatrixLayout& layout, ir::Expr rows, ir::Expr columns);

// The tensor map of [batch, line, inner] of 16-bit elements, contiguous along `inner`; nullopt
// where TMA cannot address it. Strides of dimensions with one element have no effect.
std::optional<TmaView> matrix_view(ir::ExprPool& pool, const BufferRef& buffer, DType dtype,
                                   ir::Expr offset, ir::Expr inner, ir::Expr lines, ir::Expr line,
                                   ir::Expr batches, ir::Expr batch, std::vector<int> box);

}  // namespace redfuser::codegen
