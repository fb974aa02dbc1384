#include "codegen/matrix/padded_operand.h"

#include <algorithm>

#include "codegen/elementwise/elementwise_kernel.h"
#include "ir/contraction.h"

namespace redfuser::codegen {

bool is_whole(ir::ExprPool& pool, ir::Expr size, DType dtype) {
  return pool.floormod(size, pool.integer(size_in_vectors(1, dtype)))->is_constant(0);
}

void find_padding(const StepBuilder& builder, ProductOperand& operand, ir::Expr rows,
                  ir::Expr columns) {
  const MemoryOrder* order = builder.target.order_of(operand.value);
  if (order == nullptr || !order->padded || !operand.layout.offset->is_constant(0)) return;
  const std::vector<ir::Expr> sizes = in_memory(builder.shape(operand.value), order);
  const bool by_rows = operand.layout.column->is_constant(1);
  const bool whole =
      by_rows ? sizes[0] == rows && sizes[1] == columns : sizes[0] == columns && sizes[1] == rows;
  operand.more_rows = operand.more_columns = whole;
}

bool has_whole_lines(ir::ExprPool& pool, const ProductOperand& operand, ir::Expr rows,
                     ir::Expr columns, DType dtype, bool rows_are_depth) {
  const auto whole = [&](ir::Expr size) { return is_whole(pool, size, dtype); };
  const MatrixLayout& layout = operand.layout;
  const bool by_rows = layout.column->is_constant(1);
  const bool whole_rows = operand.more_rows || whole(rows);
  const bool whole_columns = operand.more_columns || whole(columns);
  return whole(layout.offset) && whole(layout.batch) &&
         whole(by_rows ? layout.row : layout.column) && (by_rows ? whole_columns : whole_rows) &&
         (rows_are_depth ? whole_rows : whole_columns);
}

namespace {

// The element, which is 0 behind the end of axes[i], of longer axes.
ir::Expr lengthened(ir::ExprPool& pool, ir::Expr element, std::vector<ir::Expr>& axes, size_t i) {
  const DType dtype = element->dtype;
  ir::Expr size = axes[i]->extent();
  if (!size->is_constant() || is_whole(pool, size, dtype)) return element;
  ir::Expr axis = pool.axis("padded", pool.integer(size_in_vectors(size->integer, dtype)));
  // The read is within bounds where its value is not used.
  ir::Expr within = pool.make(ir::ExprOp::Min, {axis, pool.integer(size->integer - 1)});
  const std::vector<std::pair<ir::Expr, ir::Expr>> moved = {{axes[i], within}};
  axes[i] = axis;
  return pool.select(pool.make(ir::ExprOp::Less, {axis, size}), pool.substitute(element, moved),
                     pool.number(0, dtype));
}

}  // namespace

ProductOperand copied_operand(StepBuilder& builder, ir::Expr element, const OperandAxes& of,
                              const std::string& comment) {
  ir::ExprPool& pool = builder.pool();
  std::vector<ir::Expr> axes;
  const bool shared = std::none_of(of.batch.begin(), of.batch.end(),
                                   [&](ir::Expr axis) { return element->depends_on(axis); });
  if (!shared) axes = of.batch;
  const size_t first_row = axes.size(), first_column = first_row + of.rows.size();
  axes.insert(axes.end(), of.rows.begin(), of.rows.end());
  axes.insert(axes.end(), of.columns.begin(), of.columns.end());
  ProductOperand copy{};
  if (builder.pads_operands) {
    copy.more_columns = of.columns.size() == 1;
    if (copy.more_columns) element = lengthened(pool, element, axes, first_column);
    copy.more_rows = of.rows.size() == 1 && of.rows[0] == of.depth;
    if (copy.more_rows) element = lengthened(pool, element, axes, first_row);
  }
  const std::vector<ir::Expr> extents = extents_of(pool, axes);
  const auto count = [&](size_t from, size_t to) {
    return product_of(
        pool, {extents.begin() + static_cast<long>(from), extents.begin() + static_cast<long>(to)});
  };
  ir::Expr rows = count(first_row, first_column), columns = count(first_column, axes.size());
  copy.value = builder.add_scratch(element->dtype, product_of(pool, extents));
  add_map(builder, "copy_operand", axes, {{copy.value, element, row_major(pool, axes, extents)}},
          "copy of a product's operand\n" + comment);
  copy.layout = {pool.integer(0), shared ? pool.integer(0) : pool.mul(rows, columns), columns,
                 pool.integer(1)};
  return copy;
}

void take_padding(ProductCall& call, bool columns) {
  if (call.padded_k != nullptr) call.k = call.padded_k;
  if (call.padded_n != nullptr && columns) call.n = call.padded_n;
  call.padded_n = call.padded_k = nullptr;
}

}  // namespace redfuser::codegen
