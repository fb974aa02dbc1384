#include <algorithm>

#include "base/error.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/loops.h"

namespace redfuser::ops {
namespace {

struct ReducedAxes {
  std::vector<bool> reduced;  // by input dimension
  bool keep = true;
};

ReducedAxes reduced_axes(const NodeView& view) {
  ReducedAxes result;
  const int rank = view.rank(0);
  result.keep = view.integer("keepdims", 1) != 0;
  const auto axes = axes_argument(view, "axes", 1, rank);
  const bool none_given = !axes || axes->empty();
  const bool all = none_given && view.integer("noop_with_empty_axes", 0) == 0;
  result.reduced.assign(static_cast<size_t>(rank), all);
  if (axes) {
    for (int axis : *axes) result.reduced[axis] = true;
  }
  return result;
}

void infer_reduction(InferContext& context) {
  if (!is_float(context.dtype(0)) && !is_integer(context.dtype(0)) &&
      context.dtype(0) != DType::Bool) {
    context.fail(fmt::format("dtype {} is not supported", name_of(context.dtype(0))));
  }
  const ReducedAxes axes = reduced_axes(context);
  Shape shape;
  for (size_t d = 0; d < axes.reduced.size(); ++d) {
    if (!axes.reduced[d]) {
      shape.push_back(context.shape(0)[d]);
    } else if (axes.keep) {
      shape.push_back(context.pool().integer(1));
    }
  }
  context.set(0, context.dtype(0), std::move(shape));
}

// The loops of the node; kept dimensions have the result's index.
Loops loops_of(LowerContext& context) {
  const ReducedAxes axes = reduced_axes(context);
  std::vector<ir::Expr> index(axes.reduced.size(), context.pool().integer(0));
  size_t next = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!axes.reduced[d]) index[d] = context.index()[next];
    if (!axes.reduced[d] || axes.keep) ++next;
  }
  return make_loops(context, context.shape(0), axes.reduced, std::move(index));
}

struct Reducing {
  ir::ExprPool& pool;
  const Loops& loops;
  ir::Expr x;
  ir::Expr op(ir::ExprOp op, ir::Expr a) const { return pool.make(op, {a}); }
  ir::Expr over(ir::Reduction reduction, ir::Expr body) const {
    return reduce_over(pool, reduction, loops, body);
  }
  ir::Expr sum(ir::Expr body) const { return over(ir::Reduction::Sum, body); }
};

ir::Expr sum(const Reducing& r) { return r.sum(r.x); }
ir::Expr product(const Reducing& r) { return r.over(ir::Reduction::Prod, r.x); }
ir::Expr mean(const Reducing& r) { return mean_over(r.pool, r.loops, r.x); }
ir::Expr l1(const Reducing& r) { return r.sum(r.op(ir::ExprOp::Abs, r.x)); }
ir::Expr sum_square(const Reducing& r) { return r.sum(r.pool.mul(r.x, r.x)); }
ir::Expr l2(const Reducing& r) { return r.op(ir::ExprOp::Sqrt, sum_square(r)); }
ir::Expr log_sum(const Reducing& r) { return r.op(ir::ExprOp::Log, sum(r)); }

// The maximum or minimum of booleans is their disjunction or conjunction.
template <ir::Reduction reduction>
ir::Expr extreme(const Reducing& r) {
  if (r.x->dtype != DType::Bool) return r.over(reduction, r.x);
  return r.pool.cast(DType::Bool, r.over(reduction, r.pool.cast(DType::Int32, r.x)));
}

// m + log Σ exp(x - m) with m = max x where that is finite: exp neither overflows nor is NaN.
ir::Expr log_sum_exp(const Reducing& r) {
  ir::Expr m = r.over(ir::Reduction::Max, r.x), zero = r.pool.number(0, r.x->dtype);
  ir::Expr infinite =
      r.pool.make(ir::ExprOp::Or, {r.op(ir::ExprOp::IsPosInf, m), r.op(ir::ExprOp::IsNegInf, m)});
  ir::Expr shift = r.pool.select(infinite, zero, m);
  return r.pool.add(shift,
                    r.op(ir::ExprOp::Log, r.sum(r.op(ir::ExprOp::Exp, r.pool.sub(r.x, shift)))));
}

// Integers are computed as real numbers and rounded towards zero.
template <auto f>
ir::Expr in_reals(const Reducing& r) {
  if (is_float(r.x->dtype)) return f(r);
  const ir::Expr result = f(Reducing{r.pool, r.loops, r.pool.cast(DType::Float64, r.x)});
  return r.pool.cast(r.x->dtype, result);
}

// Over no axes the sum or extremum is the element itself; functions before and after the reduction
// still apply: ReduceSumSquare gives the square, ReduceLogSum the logarithm.
template <auto f>
ir::Expr lower_reduction(LowerContext& context) {
  const Loops loops = loops_of(context);
  return f(Reducing{context.pool(), loops, context.read(0, loops.index)});
}

template <auto f>
constexpr OpDef reduction(std::string_view name) {
  return {name, "", 1, infer_reduction, lower_reduction<f>};
}

// Pooling over all dimensions after the channel.
void infer_global(InferContext& context) {
  if (context.rank(0) < 3) context.fail("the input must have spatial dimensions");
  Shape shape = context.shape(0);
  std::fill(shape.begin() + 2, shape.end(), context.pool().integer(1));
  context.set(0, context.dtype(0), std::move(shape));
}

template <auto f>
ir::Expr lower_global(LowerContext& context) {
  std::vector<bool> reduced(context.shape(0).size(), true);
  reduced[0] = reduced[1] = false;
  const Loops loops = make_loops(context, context.shape(0), reduced,
                                 {context.index().begin(), context.index().end()});
  return f(Reducing{context.pool(), loops, context.read(0, loops.index)});
}

constexpr OpDef kOps[] = {
    reduction<sum>("ReduceSum"),
    reduction<mean>("ReduceMean"),
    reduction<extreme<ir::Reduction::Max>>("ReduceMax"),
    reduction<extreme<ir::Reduction::Min>>("ReduceMin"),
    reduction<product>("ReduceProd"),
    reduction<l1>("ReduceL1"),
    reduction<in_reals<l2>>("ReduceL2"),
    reduction<in_reals<log_sum>>("ReduceLogSum"),
    reduction<in_reals<log_sum_exp>>("ReduceLogSumExp"),
    reduction<sum_square>("ReduceSumSquare"),
    {"GlobalAveragePool", "", 1, infer_global, lower_global<mean>},
    {"GlobalMaxPool", "", 1, infer_global, lower_global<extreme<ir::Reduction::Max>>},
};

}  // namespace

std::span<const OpDef> reduction_ops() { return kOps; }

}  // namespace redfuser::ops
