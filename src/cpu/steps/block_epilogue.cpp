#include "cpu/steps/block_epilogue.h"

#include <algorithm>

#include "cpu/tile/specialize.h"

namespace redfuser::cpu {
namespace {

constexpr int64_t kElements = 4096;  // of a tile

// The values of the axes at every batch, in order.
std::vector<std::vector<int64_t>> points_of(const std::vector<ir::Expr>& axes) {
  std::vector<std::vector<int64_t>> points(static_cast<size_t>(extent_of(axes)));
  std::vector<int64_t> point(axes.size());
  for (auto& target : points) {
    target = point;
    for (size_t d = axes.size(); d-- > 0;) {
      if (++point[d] < extent_of(axes[d])) break;
      point[d] = 0;
    }
  }
  return points;
}

}  // namespace

bool is_product(ir::Expr e) {
  return e->op == ir::ExprOp::Leaf && e->leaf_kind == ir::LeafKind::Product;
}

// Without columns the product is a column of the block: its rows lie `stride` apart, so such a
// product is spread over one column.
void BlockEpilogue::build(ir::ExprPool& pool, TileBuilder& builder, const Axes& axes, ir::Expr body,
                          int products, DType dtype, const Output& output,
                          GrowingExtents* growing) {
  dtype_ = dtype;
  batch_points_ = points_of(axes.batch);
  for (ir::Expr axis : axes.batch) builder.set_outer(axis);
  if (growing != nullptr) growing->set_axes(builder, axes.m, axes.n);
  builder.set_rows(axes.m);
  scope_ = builder.fixed_scope(
      axes.n.empty() ? std::vector<ir::Expr>{pool.axis("n", pool.integer(1))} : axes.n);
  for (int i = 0; i < products; ++i) {
    products_.push_back(builder.make_view(elem_of(dtype_), Shape::Tile, scope_));
  }
  visit(body, [&](ir::Expr e) {
    if (!is_product(e)) return;
    const RegisterId product = products_.at(static_cast<size_t>(e->integer));
    builder.bind(e, builder.converted(product, elem_of(e->dtype)));
  });
  builder.store(0, output.dtype, output.dims, output.indices, builder.compile_to_store(body),
                scope_);
}

void BlockEpilogue::set_block(TileProgram& program, int64_t rows, int64_t columns) const {
  program.scopes[static_cast<size_t>(scope_)].tile = padded(columns);
  program.row_tile = std::clamp<int64_t>(kElements / padded(columns), 1, rows);
  program.layout();
}

void BlockEpilogue::run(const TileProgram& program, TileContext& machine, const Block& block,
                        const Results& results) const {
  const std::vector<int64_t>& point = batch_points_[static_cast<size_t>(block.batch)];
  std::copy(point.begin(), point.end(), machine.axes.begin());
  machine.columns[static_cast<size_t>(scope_)] = {block.column, block.columns};
  const int64_t row_bytes = results.stride * static_cast<int64_t>(size_of(dtype_));
  for (int64_t row = 0; row < block.rows; row += program.row_tile) {
    char* data = results.data + row * row_bytes;
    for (const RegisterId product : products_) {
      machine.slots[static_cast<size_t>(product)] = {data, results.stride, nullptr};
      data += results.bytes;
    }
    program.run(machine, block.row + row, std::min(program.row_tile, block.rows - row));
  }
}

}  // namespace redfuser::cpu
