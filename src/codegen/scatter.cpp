// Scatters: the data copied, then every update stored where its index says. Equal indices have no
// order in ONNX.
#include "base/error.h"
#include "codegen/opaque_kernels.h"

namespace redfuser {
namespace {

Expr wrapped(ExprPool& pool, Expr index, Expr size) {
  Expr negative = pool.make(ExprOp::Less, {index, pool.integer(0)});
  index = pool.select(negative, pool.add(index, size), index);
  return pool.make(ExprOp::Min, {pool.make(ExprOp::Max, {index, pool.integer(0)}),
                                 pool.sub(size, pool.integer(1))});
}

void copy_data(StepBuilder& builder, const NodeView& view) {
  ExprPool& pool = builder.pool();
  const ValueId value = view.node().outputs[0];
  const std::vector<Expr> axes = output_axes(builder.graph, value);
  Expr read = pool.read(view.node().inputs[0], view.dtype(0), axes);
  add_map(builder, "copy", axes,
          {{value, builder.flat.flat(read), row_major(pool, axes, builder.shape(value))}},
          "copy\n");
}

void check_plain(const NodeView& view) {
  if (view.text("reduction", "none") != "none") {
    view.fail("a scatter that combines its updates has no kernel on a GPU");
  }
}

void add_scatter(StepBuilder& builder, const NodeView& view, const std::vector<Expr>& axes,
                 const std::vector<Expr>& target) {
  ExprPool& pool = builder.pool();
  const ValueId value = view.node().outputs[0];
  Expr update = pool.read(view.node().inputs[2], view.dtype(2), axes);
  Expr offset = row_major(pool, target, builder.shape(value));
  add_map(builder, "scatter", axes, {{value, builder.flat.flat(update), builder.flat.flat(offset)}},
          "scatter\n");
}

}  // namespace

void generate_scatter_elements(StepBuilder& builder, const NodeView& view) {
  ExprPool& pool = builder.pool();
  check_plain(view);
  copy_data(builder, view);
  const std::vector<Expr> axes = output_axes(builder.graph, view.node().inputs[2]);
  const auto axis = static_cast<size_t>(view.axis(view.integer("axis", 0), view.rank(0)));
  std::vector<Expr> target = axes;
  Expr index = pool.cast(DType::Int64, pool.read(view.node().inputs[1], view.dtype(1), axes));
  target[axis] = wrapped(pool, index, view.shape(0)[axis]);
  add_scatter(builder, view, axes, target);
}

void generate_scatter_nd(StepBuilder& builder, const NodeView& view) {
  ExprPool& pool = builder.pool();
  check_plain(view);
  Expr last = view.shape(1).back();
  if (!last->is_constant()) view.fail("the length of an index tuple must be static");
  copy_data(builder, view);
  const std::vector<Expr> axes = output_axes(builder.graph, view.node().inputs[2]);
  const size_t prefix = view.shape(1).size() - 1;
  std::vector<Expr> target;
  for (int64_t i = 0; i < last->integer; ++i) {
    std::vector<Expr> at(axes.begin(), axes.begin() + static_cast<long>(prefix));
    at.push_back(pool.integer(i));
    Expr index = pool.cast(DType::Int64, pool.read(view.node().inputs[1], view.dtype(1), at));
    target.push_back(wrapped(pool, index, view.shape(0)[static_cast<size_t>(i)]));
  }
  target.insert(target.end(), axes.begin() + static_cast<long>(prefix), axes.end());
  add_scatter(builder, view, axes, target);
}

}  // namespace redfuser
