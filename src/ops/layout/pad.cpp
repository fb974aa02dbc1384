#include "base/error.h"
#include "ir/polynomial.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace redfuser::ops {
namespace {

struct Padding {
  int axis;
  ir::Expr before, after;
};

template <typename Context>
std::vector<Padding> paddings(const Context& context) {
  const auto pads = size_argument(context, "pads", 1);
  if (!pads) context.fail("no pads");
  std::vector<int> all;
  for (int i = 0; i < context.rank(0); ++i) all.push_back(i);
  const auto axes = axes_argument(context, "axes", 3, context.rank(0)).value_or(all);
  if (pads->size() != 2 * axes.size()) {
    context.fail(fmt::format("{} pads for {} axes", pads->size(), axes.size()));
  }
  std::vector<Padding> result;
  for (size_t i = 0; i < axes.size(); ++i) {
    result.push_back({axes[i], (*pads)[i], (*pads)[axes.size() + i]});
  }
  return result;
}

enum class Mode { Constant, Edge, Reflect, Wrap };

Mode pad_mode(const NodeView& view) {
  const std::string mode = view.text("mode", "constant");
  if (mode == "constant") return Mode::Constant;
  if (mode == "edge") return Mode::Edge;
  if (mode == "reflect") return Mode::Reflect;
  if (mode == "wrap") return Mode::Wrap;
  view.fail(fmt::format("mode \"{}\" is not supported", mode));
}

void infer_pad(InferContext& context) {
  ir::ExprPool& pool = context.pool();
  const Mode mode = pad_mode(context);
  Shape shape = context.shape(0);
  for (const Padding& padding : paddings(context)) {
    ir::Expr& size = shape[padding.axis];
    const ir::Expr sum = pool.add(size, pool.add(padding.before, padding.after));
    if (sum->is_constant() && sum->integer < 0) {
      context.fail(fmt::format("pads {} and {} remove more than the {} elements of dimension {}",
                               to_string(pool, padding.before), to_string(pool, padding.after),
                               to_string(pool, size), padding.axis));
    }
    if (!sum->has_read) {
      context.require_at_most(pool.integer(0), sum,
                              fmt::format("what pads leave of dimension {}", padding.axis));
    }
    const ir::Expr padded = at_least_zero(pool, sum);
    // The other modes pad with elements of the dimension, which must not be empty.
    if (mode != Mode::Constant && !padded->has_read) {
      context.require_at_most(pool.make(ir::ExprOp::Min, {padded, pool.integer(1)}), size,
                              fmt::format("dimension {} is empty", padding.axis));
    }
    size = padded;
  }
  context.set(0, context.dtype(0), std::move(shape));
}

// (n - 1) - |(n - 1) - (|p| mod 2(n - 1))|: a position mirrored at both ends, any number of times.
ir::Expr reflected(ir::ExprPool& pool, ir::Expr position, ir::Expr size) {
  ir::Expr last = pool.sub(size, pool.integer(1));
  ir::Expr period = pool.make(ir::ExprOp::Max, {pool.integer(1), pool.mul(pool.integer(2), last)});
  ir::Expr folded = pool.floormod(position, period);
  return pool.sub(last, pool.make(ir::ExprOp::Abs, {pool.sub(last, folded)}));
}

ir::Expr source_position(ir::ExprPool& pool, Mode mode, ir::Expr position, ir::Expr size) {
  if (mode == Mode::Wrap) return pool.floormod(position, size);
  if (mode == Mode::Reflect) position = reflected(pool, position, size);
  return clamp_index(pool, position, size);
}

ir::Expr pad_value(LowerContext& context) {
  const DType dtype = context.result().dtype;
  if (auto value = scalar_argument(context, "value", 2, dtype)) return *value;
  return context.pool().number(0, dtype);
}

ir::Expr lower_pad(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const Mode mode = pad_mode(context);
  std::vector<ir::Expr> index(context.index().begin(), context.index().end());
  ir::Expr inside = pool.boolean(true);
  for (const Padding& padding : paddings(context)) {
    ir::Expr size = context.shape(0)[padding.axis];
    ir::Expr position = pool.sub(index[padding.axis], padding.before);
    if (padding.before->is_constant(0) && padding.after->is_constant(0)) continue;
    ir::Expr low = pool.make(ir::ExprOp::LessEqual, {pool.integer(0), position});
    ir::Expr within = pool.make(ir::ExprOp::And, {low, less(pool, position, size)});
    inside = pool.make(ir::ExprOp::And, {inside, within});
    index[padding.axis] = source_position(pool, mode, position, size);
  }
  ir::Expr element = context.read(0, std::move(index));
  return mode == Mode::Constant ? pool.select(inside, element, pad_value(context)) : element;
}

constexpr OpDef kOps[] = {
    {"Pad", "", 2, infer_pad, lower_pad},
};

}  // namespace

std::span<const OpDef> pad_ops() { return kOps; }

}  // namespace redfuser::ops
