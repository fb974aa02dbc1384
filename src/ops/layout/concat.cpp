#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/reindex.h"

namespace redfuser::ops {
namespace {

int concat_axis(const NodeView& view) { return view.axis(view.integer("axis", 1), view.rank(0)); }

void infer_concat(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  const int axis = concat_axis(context);
  Shape shape = context.shape(0);
  for (int i = 1; i < context.input_count(); ++i) {
    const Shape& next = context.shape(i);
    if (next.size() != shape.size() || context.dtype(i) != context.dtype(0)) {
      context.fail(fmt::format("input {} is {}{}, input 0 is {}{}", i, name_of(context.dtype(i)),
                               shape_text(pool, next), name_of(context.dtype(0)),
                               shape_text(pool, shape)));
    }
    for (int d = 0; d < context.rank(0); ++d) {
      if (d == axis) {
        shape[d] = pool.add(shape[d], next[d]);
      } else {
        context.require_equal(shape[d], next[d], fmt::format("dimension {} of input {}", d, i));
        if (next[d]->is_constant()) shape[d] = next[d];
      }
    }
  }
  context.set(0, context.dtype(0), std::move(shape));
}

ir::Expr lower_concat(LowerContext& context) {
  const auto axis = static_cast<size_t>(concat_axis(context));
  std::vector<ir::Expr> sizes;
  for (int i = 0; i < context.input_count(); ++i) sizes.push_back(context.shape(i)[axis]);
  ir::Expr result = joined_element(context.pool(), sizes, axis, context.index(),
                                   [&](size_t part, std::vector<ir::Expr> at) {
                                     return context.read(static_cast<int>(part), std::move(at));
                                   });
  return result ? result : context.pool().number(0, context.result().dtype);
}

// Sizes of the parts: from `split`, or equal with a smaller last part.
std::vector<ir::Expr> split_sizes(const NodeView& view, int axis) {
  ir::ExprPool& pool = view.pool();
  if (auto sizes = size_argument(view, "split", 1)) {
    if (static_cast<int>(sizes->size()) != view.output_count()) {
      view.fail(fmt::format("{} sizes for {} outputs", sizes->size(), view.output_count()));
    }
    return *sizes;
  }
  const int64_t parts = view.integer("num_outputs", view.output_count());
  if (parts < 1 || view.output_count() > parts) {
    view.fail(fmt::format("{} outputs of {} parts", view.output_count(), parts));
  }
  ir::Expr total = view.shape(0)[axis];
  if (!view.has("num_outputs")) {
    ir::Expr part = pool.floordiv(total, pool.integer(parts));
    return std::vector<ir::Expr>(static_cast<size_t>(parts), part);
  }
  ir::Expr chunk = ceil_div(pool, total, pool.integer(parts));
  std::vector<ir::Expr> sizes(static_cast<size_t>(view.output_count()), chunk);
  // The last parts are smaller or empty. Of two parts, the second needs no clamp: total -
  // ceil(total / 2) >= 0.
  for (size_t i = 1; i < sizes.size(); ++i) {
    ir::Expr rest = pool.sub(total, pool.mul(chunk, pool.integer(static_cast<int64_t>(i))));
    sizes[i] = parts == 2 ? rest : at_least_zero(pool, pool.make(ir::ExprOp::Min, {chunk, rest}));
  }
  return sizes;
}

void infer_split(InferContext& context) {
  const int axis = context.axis(context.integer("axis", 0), context.rank(0));
  const auto sizes = split_sizes(context, axis);
  ir::Expr total = context.pool().integer(0);
  for (int i = 0; i < context.output_count(); ++i) {
    Shape shape = context.shape(0);
    shape[axis] = sizes[i];
    total = context.pool().add(total, sizes[i]);
    context.set(i, context.dtype(0), std::move(shape));
  }
  if (!total->has_read && !context.has("num_outputs")) {
    context.require_equal(total, context.shape(0)[axis], "the parts and the split dimension");
  }
}

// The start of part `output`. Parts of one size are multiplied, not added up, since there may be
// many.
ir::Expr split_start(const LowerContext& context, int axis) {
  ir::ExprPool& pool = context.pool();
  const ir::Expr whole = context.shape(0)[axis];
  const bool given = context.has("split") || context.has_input(1);
  if (!given) {
    const int64_t parts = context.integer("num_outputs", context.output_count());
    ir::Expr part = context.has("num_outputs") ? ceil_div(pool, whole, pool.integer(parts))
                                               : pool.floordiv(whole, pool.integer(parts));
    return pool.mul(part, pool.integer(context.output()));
  }
  int64_t known = 0;
  ir::Expr start = pool.integer(0);
  for (int i = 0; i < context.output(); ++i) {
    const ir::ValueId part = context.node().outputs[i];
    const ir::Expr size = part == ir::kAbsent ? split_sizes(context, axis)[i]
                                              : context.graph().values[part].shape[axis];
    if (size->is_constant()) {
      known += size->integer;
    } else {
      start = pool.add(start, size);
    }
  }
  return pool.add(start, pool.integer(known));
}

ir::Expr lower_split(LowerContext& context) {
  const int axis = context.axis(context.integer("axis", 0), context.rank(0));
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  index[axis] = context.pool().add(index[axis], split_start(context, axis));
  return context.read(0, std::move(index));
}

constexpr OpDef kOps[] = {
    {"Concat", "", 4, infer_concat, lower_concat},
    {"Split", "", 2, infer_split, lower_split},
};

}  // namespace

std::span<const OpDef> concat_ops() { return kOps; }

}  // namespace redfuser::ops
