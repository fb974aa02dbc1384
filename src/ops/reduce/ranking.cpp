// Reductions that return positions: ArgMax, ArgMin and TopK.
#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

int ranked_axis(const NodeView& view, int64_t fallback) {
  return view.axis(view.integer("axis", fallback), view.rank(0));
}

void infer_arg(InferContext& context) {
  const int axis = ranked_axis(context, 0);
  Shape shape = context.shape(0);
  ir::Expr size = shape[axis];
  shape[axis] = context.pool().integer(1);
  ir::Expr wanted =
      context.pool().make(ir::ExprOp::Min, {product_of(context.pool(), shape), shape[axis]});
  context.require_at_most(wanted, size, fmt::format("dimension {} is empty", axis));
  if (context.integer("keepdims", 1) == 0) shape.erase(shape.begin() + axis);
  context.set(0, DType::Int64, std::move(shape));
}

// The last position of an extremum is the first one in reverse order.
template <ir::Reduction reduction>
ir::Expr lower_arg(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const int axis = ranked_axis(context, 0);
  ir::Expr size = context.shape(0)[axis], last = pool.sub(size, pool.integer(1));
  if (size->is_constant(1)) return pool.integer(0);
  ir::Expr loop = context.loop_axis(0, size);
  const bool reversed = context.integer("select_last_index", 0) != 0;
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  if (context.integer("keepdims", 1) == 0) index.insert(index.begin() + axis, nullptr);
  index[axis] = reversed ? pool.sub(last, loop) : loop;
  ir::Expr position =
      pool.reduce(reduction, loop, context.read(0, std::move(index)), nullptr, true);
  return reversed ? pool.sub(last, position) : position;
}

void infer_top_k(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  const int axis = ranked_axis(context, -1);
  ir::Expr k = context.has("k") ? pool.integer(context.integer("k", 0))
                                : pool.cast(DType::Int64, only_element(context, 1));
  Shape shape = context.shape(0);
  if (!k->has_read) {
    context.require_at_most(k, shape[axis],
                            fmt::format("k and the elements of dimension {}", axis));
  }
  shape[axis] = k;
  context.set(0, context.dtype(0), shape);
  context.set(1, DType::Int64, std::move(shape));
}

ir::Expr lower_top_k(LowerContext& context) {
  const int axis = ranked_axis(context, -1);
  ir::Expr loop = context.loop_axis(0, context.shape(0)[axis]);
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  ir::Expr rank = index[axis];
  index[axis] = loop;
  const bool largest = context.integer("largest", 1) != 0;
  return context.pool().reduce(largest ? ir::Reduction::TopK : ir::Reduction::BottomK, loop,
                               context.read(0, std::move(index)), rank, context.output() == 1);
}

constexpr OpDef kOps[] = {
    {"ArgMax", "", 1, infer_arg, lower_arg<ir::Reduction::ArgMax>},
    {"ArgMin", "", 1, infer_arg, lower_arg<ir::Reduction::ArgMin>},
    {"TopK", "", 1, infer_top_k, lower_top_k},
};

}  // namespace

std::span<const OpDef> ranking_ops() { return kOps; }

}  // namespace redfuser::ops
