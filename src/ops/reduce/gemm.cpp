#include "base/error.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/reduce/factors.h"

namespace redfuser::ops {
namespace {

struct GemmSizes {
  bool trans_a, trans_b;
  ir::Expr m, n, k_a, k_b;
};

GemmSizes gemm_sizes(const NodeView& view) {
  if (view.rank(0) != 2 || view.rank(1) != 2) {
    view.fail(fmt::format("inputs of shapes {} and {} are not matrices",
                          shape_text(view.pool(), view.shape(0)),
                          shape_text(view.pool(), view.shape(1))));
  }
  const bool ta = view.integer("transA", 0) != 0, tb = view.integer("transB", 0) != 0;
  const Shape &a = view.shape(0), &b = view.shape(1);
  return {ta, tb, a[ta ? 1 : 0], b[tb ? 0 : 1], a[ta ? 0 : 1], b[tb ? 1 : 0]};
}

void infer_gemm(InferContext& context) {
  check_factors(context);
  const GemmSizes sizes = gemm_sizes(context);
  context.require_equal(sizes.k_a, sizes.k_b, factors_text(context, 1));
  const Shape shape{sizes.m, sizes.n};
  if (context.has_input(2)) {
    const Shape& c = context.shape(2);
    const std::string what =
        fmt::format("C of shape {} does not broadcast to {}", shape_text(context.pool(), c),
                    shape_text(context.pool(), shape));
    if (c.size() > 2) context.fail(what);
    for (size_t d = 0; d < c.size(); ++d) {
      context.require_broadcast(c[d], shape[2 - c.size() + d], what);
    }
  }
  context.set(0, context.dtype(0), shape);
}

ir::Expr lower_gemm(LowerContext& context) {
  ir::ExprPool& pool = context.pool();
  const GemmSizes sizes = gemm_sizes(context);
  const DType dtype = context.result().dtype;
  ir::Expr m = context.index()[0], n = context.index()[1];
  ir::Expr k = context.loop_axis(0, inner_size(sizes.k_a, sizes.k_b));
  ir::Expr a = sizes.trans_a ? context.read(0, {k, m}) : context.read(0, {m, k});
  ir::Expr b = sizes.trans_b ? context.read(1, {n, k}) : context.read(1, {k, n});
  ir::Expr result = pool.reduce(ir::Reduction::Sum, k, pool.mul(a, b));
  const double alpha = context.real("alpha", 1), beta = context.real("beta", 1);
  if (alpha != 1) result = pool.mul(pool.number(alpha, dtype), result);
  if (!context.has_input(2) || beta == 0) return result;
  ir::Expr c = context.read_broadcast(2);
  if (beta != 1) c = pool.mul(pool.number(beta, dtype), c);
  return pool.add(result, c);
}

constexpr OpDef kOps[] = {{"Gemm", "", 1, infer_gemm, lower_gemm}};

}  // namespace

std::span<const OpDef> gemm_ops() { return kOps; }

}  // namespace redfuser::ops
