#include <algorithm>

#include "cascade/contraction.h"
#include "ir/polynomial.h"
#include "plan/groups.h"

namespace redfuser {
namespace {

Expr only_reduction(Expr body) {
  Expr found = nullptr;
  int count = 0;
  visit(body, [&](Expr e) {
    if (e->op != ExprOp::Reduce) return;
    ++count;
    found = e;
  });
  return count == 1 ? found : nullptr;
}

bool affine_read(ExprPool& pool, Expr read, const std::vector<Expr>& axes) {
  for (Expr index : read->args) {
    if (index->has_read) return false;
    for (Expr axis : axes) {
      auto affine = affine_in(pool, index, axis);
      if (!affine || !affine->stride->free_axes.empty()) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<ProductStep> as_product(ExprPool& pool, ValueId value, Expr body,
                                      const std::vector<Expr>& axes) {
  Expr reduce = only_reduction(body);
  if (!reduce) return std::nullopt;
  auto contraction = as_contraction(pool, reduce);
  if (!contraction) return std::nullopt;
  ProductStep step;
  step.value = value;
  step.axes = axes;
  step.k = contraction->axis;
  step.a = contraction->a;
  step.b = contraction->b;
  std::vector<Expr> loops = {step.k};
  for (Expr axis : axes) {
    if (axis->op != ExprOp::Axis) continue;
    const bool a = step.a->depends_on(axis), b = step.b->depends_on(axis);
    if (!a && !b) return std::nullopt;
    (a && b ? step.batch : a ? step.m : step.n).push_back(axis);
    loops.push_back(axis);
  }
  if (!affine_read(pool, step.a, loops) || !affine_read(pool, step.b, loops)) return std::nullopt;
  // Rows come first in memory: swap the sides if the output says so.
  if (!step.m.empty() && !step.n.empty()) {
    auto position = [&](Expr axis) { return std::find(axes.begin(), axes.end(), axis); };
    if (position(step.n.back()) < position(step.m.back())) {
      std::swap(step.m, step.n);
      std::swap(step.a, step.b);
    }
  } else if (step.n.empty()) {
    std::swap(step.m, step.n);
    std::swap(step.a, step.b);
  }
  Expr product = pool.leaf(LeafKind::Product, 0, reduce->dtype);
  if (contraction->scale) product = pool.mul(product, contraction->scale);
  step.epilogue = pool.substitute(body, {{reduce, product}});
  return step;
}

}  // namespace redfuser
