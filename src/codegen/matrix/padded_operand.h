// Operands of products whose rows are whole vectors of 16 bytes, by padding.
#pragma once

#include <string>
#include <vector>

#include "codegen/core/step_builder.h"
#include "codegen/matrix/matrix_layout.h"

namespace redfuser::codegen {

// A matrix of a product as the library or a kernel reads it.
struct ProductOperand {
  MatrixLayout layout;
  int64_t value;
  // Behind the last row, or column, there are zeros up to a multiple of a vector's elements.
  bool more_rows = false, more_columns = false;
};

// The sizes of a vector divide `size`.
bool is_whole(ir::ExprPool& pool, ir::Expr size, DType dtype);

// Notes the zeros behind a constant matrix that is padded in memory, if the layout reads all of it.
void find_padding(const StepBuilder& builder, ProductOperand& operand, ir::Expr rows,
                  ir::Expr columns);

// Whether lines along the contiguous dimension are whole vectors, and both dimensions in `depth`
// (rows or columns that are contracted) are, or are padded.
bool has_whole_lines(ir::ExprPool& pool, const ProductOperand& operand, ir::Expr rows,
                     ir::Expr columns, DType dtype, bool rows_are_depth);

// The axes of an operand.
struct OperandAxes {
  const std::vector<ir::Expr>&batch, &rows, &columns;
  ir::Expr depth;  // the contracted one, that of all rows or of all columns
};
// Adds a row-major copy of an operand, of batches only if they differ. Where the builder pads,
// rows have whole vectors, and as many of them lie along the contracted axis.
ProductOperand copied_operand(StepBuilder& builder, ir::Expr element, const OperandAxes& of,
                              const std::string& comment);

// Makes the sizes those of the memory where operands are padded. `columns`: c has room for them.
void take_padding(ProductCall& call, bool columns);

}  // namespace redfuser::codegen
