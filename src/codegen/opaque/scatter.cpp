// Scatters: the data copied, then every update stored where its index says; equal indices have no
// order in ONNX. Where updates are combined, every element folds those that are meant for it, so
// that the bits are always the same:
//
//     y[o] = data[o] ⊕ (⊕ over j with index[j] = o of update[j])
//
// It finds them among all updates, or has a list of them where that takes less time.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "codegen/elementwise/elementwise_kernel.h"
#include "codegen/opaque/opaque_kernels.h"
#include "codegen/opaque/scatter_lists.h"
#include "ir/scalars/integers.h"
#include "ops/lowering.h"

namespace redfuser::codegen {
namespace {

ir::Expr wrapped(ir::ExprPool& pool, ir::Expr index, ir::Expr size) {
  ir::Expr negative = pool.make(ir::ExprOp::Less, {index, pool.integer(0)});
  index = pool.select(negative, pool.add(index, size), index);
  return pool.make(ir::ExprOp::Min, {pool.make(ir::ExprOp::Max, {index, pool.integer(0)}),
                                     pool.sub(size, pool.integer(1))});
}

void copy_data(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const ir::ValueId value = view.node().outputs[0];
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, value);
  ir::Expr read = pool.read(view.node().inputs[0], view.dtype(0), axes);
  add_map(builder, "copy", axes, {{value, builder.flat.flat(read), builder.offset_of(value, axes)}},
          "copy\n");
}

struct Combination {
  ir::Reduction reduction;
  ir::ExprOp operation;
};
// Null: updates replace the old elements.
std::optional<Combination> combination(const ops::NodeView& view) {
  const std::string name = view.text("reduction", "none");
  if (name == "none") return std::nullopt;
  if (name == "add") return Combination{ir::Reduction::Sum, ir::ExprOp::Add};
  if (name == "mul") return Combination{ir::Reduction::Prod, ir::ExprOp::Mul};
  if (name == "max") return Combination{ir::Reduction::Max, ir::ExprOp::Max};
  if (name == "min") return Combination{ir::Reduction::Min, ir::ExprOp::Min};
  view.fail("unknown reduction \"" + name + "\"");
}

ir::Expr identity(ir::ExprPool& pool, ir::Reduction reduction, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool largest = reduction == ir::Reduction::Min;
  if (reduction == ir::Reduction::Sum) return pool.number(0, dtype);
  if (reduction == ir::Reduction::Prod) return pool.number(1, dtype);
  if (is_float(dtype)) return pool.number(largest ? kInfinity : -kInfinity, dtype);
  return pool.number_int(largest ? ir::highest_word(dtype) : ir::lowest_word(dtype), dtype);
}

ir::Expr every(ir::ExprPool& pool, const std::vector<ir::Expr>& conditions) {
  ir::Expr all = pool.boolean(true);
  for (const ir::Expr condition : conditions) all = pool.make(ir::ExprOp::And, {all, condition});
  return all;
}

// Sums of halves are kept in fp32.
DType wide_type(DType dtype) {
  return is_float(dtype) && size_of(dtype) == 2 ? DType::Float32 : dtype;
}

// The output over its axes, reduced over the updates along `walked` for which `meant` is true.
void add_combined(StepBuilder& builder, const ops::NodeView& view, const Combination& how,
                  const std::vector<ir::Expr>& axes, const std::vector<ir::Expr>& walked,
                  const std::vector<ir::Expr>& update, ir::Expr meant) {
  ir::ExprPool& pool = builder.pool();
  const DType dtype = view.dtype(0), wide = wide_type(dtype);
  ir::Expr folded =
      pool.select(meant, pool.cast(wide, pool.read(view.node().inputs[2], view.dtype(2), update)),
                  identity(pool, how.reduction, wide));
  for (size_t i = walked.size(); i-- > 0;) {
    folded = pool.reduce(how.reduction, walked[i], folded);
  }
  ir::Expr data = pool.cast(wide, pool.read(view.node().inputs[0], dtype, axes));
  ir::Expr body = pool.cast(dtype, pool.make(how.operation, {data, folded}));
  const ir::ValueId value = view.node().outputs[0];
  add_map(builder, "scatter_combined", axes,
          {{value, builder.flat.flat(body), builder.offset_of(value, axes)}}, "scatter\n");
}

void add_scatter(StepBuilder& builder, const ops::NodeView& view, const std::vector<ir::Expr>& axes,
                 const std::vector<ir::Expr>& target) {
  ir::ExprPool& pool = builder.pool();
  const ir::ValueId value = view.node().outputs[0];
  ir::Expr update = pool.read(view.node().inputs[2], view.dtype(2), axes);
  ir::Expr offset = builder.offset_of(value, target);
  add_map(builder, "scatter", axes, {{value, builder.flat.flat(update), builder.flat.flat(offset)}},
          "scatter\n");
}

// The updates along `updates`, each of which is meant for the first axes of the data, at `target`.
CombinedScatter listed(StepBuilder& builder, const ops::NodeView& view, const Combination& how,
                       const std::vector<ir::Expr>& updates, const std::vector<ir::Expr>& target) {
  ir::ExprPool& pool = builder.pool();
  const DType dtype = view.dtype(0), wide = wide_type(dtype);
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, view.node().outputs[0]);
  const auto first_column = axes.begin() + static_cast<long>(target.size());
  CombinedScatter result;
  result.value = view.node().outputs[0];
  result.dtype = dtype;
  result.sum = wide;
  result.any_order = !is_float(dtype) || how.reduction == ir::Reduction::Max ||
                     how.reduction == ir::Reduction::Min;
  result.updates = updates;
  result.slots = {axes.begin(), first_column};
  result.columns = {first_column, axes.end()};
  result.target = target;
  std::vector<ir::Expr> at = updates;
  at.insert(at.end(), first_column, axes.end());
  result.update = pool.read(view.node().inputs[2], view.dtype(2), at);
  result.identity = identity(pool, how.reduction, wide);
  result.operation = how.operation;
  result.data = pool.read(view.node().inputs[0], dtype, axes);
  return result;
}

// Each element finds its updates, which add_combined has from `direct`, or has a list of them.
template <typename Direct>
void add_faster(StepBuilder& builder, const ops::NodeView& view, const CombinedScatter& lists,
                const Direct& direct) {
  if (lists.dtype == DType::Bool) view.fail("combined bools have no kernel on a GPU");
  constexpr int64_t kNominal = 1024;  // for sizes that a run knows
  const auto known = [&](const std::vector<ir::Expr>& axes) {
    return std::all_of(axes.begin(), axes.end(),
                       [&](ir::Expr axis) { return builder.sizes.of(axis->extent()) >= 0; });
  };
  StepBuilder trial = builder.trial();
  if (!known(lists.updates) || !known(lists.slots) || !known(lists.columns)) {
    trial.sizes = KnownSizes::all(kNominal);
  }
  direct(trial);
  const double time = std::get<KernelLaunch>(trial.result.calls.back()).time;
  if (time <= scatter_lists_time(trial, lists, trial.sizes)) {
    direct(builder);
  } else {
    add_scatter_lists(builder, lists);
  }
}

// Updates along the axis, at the element's other indices.
void combine_elements(StepBuilder& builder, const ops::NodeView& view, const Combination& how,
                      size_t axis) {
  ir::ExprPool& pool = builder.pool();
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, view.node().outputs[0]);
  const ir::Expr along = pool.axis("j", view.shape(1)[axis]);
  std::vector<ir::Expr> at = axes, conditions;
  for (size_t d = 0; d < axes.size(); ++d) {
    const ir::Expr size = view.shape(1)[d];
    if (d == axis || size == view.shape(0)[d]) continue;
    conditions.push_back(pool.make(ir::ExprOp::Less, {axes[d], size}));
    at[d] = pool.make(ir::ExprOp::Min, {axes[d], pool.sub(size, pool.integer(1))});
  }
  at[axis] = along;
  ir::Expr index = pool.cast(DType::Int64, pool.read(view.node().inputs[1], view.dtype(1), at));
  conditions.push_back(
      pool.make(ir::ExprOp::Equal, {wrapped(pool, index, view.shape(0)[axis]), axes[axis]}));
  const std::vector<ir::Expr> updates = ops::output_axes(builder.graph, view.node().inputs[2]);
  std::vector<ir::Expr> target = updates;
  index = pool.cast(DType::Int64, pool.read(view.node().inputs[1], view.dtype(1), updates));
  target[axis] = wrapped(pool, index, view.shape(0)[axis]);
  add_faster(builder, view, listed(builder, view, how, updates, target), [&](StepBuilder& to) {
    add_combined(to, view, how, axes, {along}, at, every(pool, conditions));
  });
}

// The indices of the element that the index tuple at `at` refers to.
std::vector<ir::Expr> tuple_at(StepBuilder& builder, const ops::NodeView& view,
                               std::vector<ir::Expr> at) {
  ir::ExprPool& pool = builder.pool();
  std::vector<ir::Expr> target;
  at.push_back(nullptr);
  for (int64_t i = 0; i < view.shape(1).back()->integer; ++i) {
    at.back() = pool.integer(i);
    ir::Expr index = pool.cast(DType::Int64, pool.read(view.node().inputs[1], view.dtype(1), at));
    target.push_back(wrapped(pool, index, view.shape(0)[static_cast<size_t>(i)]));
  }
  return target;
}

// Every tuple of indices.
void combine_tuples(StepBuilder& builder, const ops::NodeView& view, const Combination& how) {
  ir::ExprPool& pool = builder.pool();
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, view.node().outputs[0]);
  std::vector<ir::Expr> walked;
  for (size_t d = 0; d + 1 < view.shape(1).size(); ++d) {
    walked.push_back(pool.axis("j", view.shape(1)[d]));
  }
  const std::vector<ir::Expr> target = tuple_at(builder, view, walked);
  std::vector<ir::Expr> conditions;
  for (size_t i = 0; i < target.size(); ++i) {
    conditions.push_back(pool.make(ir::ExprOp::Equal, {target[i], axes[i]}));
  }
  std::vector<ir::Expr> update = walked;
  update.insert(update.end(), axes.begin() + static_cast<long>(target.size()), axes.end());
  add_faster(builder, view, listed(builder, view, how, walked, target), [&](StepBuilder& to) {
    add_combined(to, view, how, axes, walked, update, every(pool, conditions));
  });
}

}  // namespace

void generate_scatter_elements(StepBuilder& builder, const ops::NodeView& view) {
  ir::ExprPool& pool = builder.pool();
  const auto axis = static_cast<size_t>(view.axis(view.integer("axis", 0), view.rank(0)));
  if (const auto how = combination(view)) return combine_elements(builder, view, *how, axis);
  copy_data(builder, view);
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, view.node().inputs[2]);
  std::vector<ir::Expr> target = axes;
  ir::Expr index = pool.cast(DType::Int64, pool.read(view.node().inputs[1], view.dtype(1), axes));
  target[axis] = wrapped(pool, index, view.shape(0)[axis]);
  add_scatter(builder, view, axes, target);
}

void generate_scatter_nd(StepBuilder& builder, const ops::NodeView& view) {
  ir::Expr last = view.shape(1).back();
  if (!last->is_constant()) view.fail("the length of an index tuple must be static");
  if (const auto how = combination(view)) return combine_tuples(builder, view, *how);
  copy_data(builder, view);
  const std::vector<ir::Expr> axes = ops::output_axes(builder.graph, view.node().inputs[2]);
  const size_t prefix = view.shape(1).size() - 1;
  std::vector<ir::Expr> target =
      tuple_at(builder, view, {axes.begin(), axes.begin() + static_cast<long>(prefix)});
  target.insert(target.end(), axes.begin() + static_cast<long>(prefix), axes.end());
  add_scatter(builder, view, axes, target);
}

}  // namespace redfuser::codegen
