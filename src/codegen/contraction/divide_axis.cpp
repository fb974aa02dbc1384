#include "codegen/contraction/divide_axis.h"

#include <algorithm>

#include "ir/polynomial.h"

namespace redfuser::codegen {
namespace {

struct Digits {
  size_t axis;
  int64_t divisor;
};

// The divisor of the axis that ⌊x / k⌋ and x mod k have, where x is s·m + ...; 0: none.
int64_t divisor_of(ir::ExprPool& pool, ir::Expr e, ir::Expr axis) {
  const bool divides = e->op == ir::ExprOp::FloorDiv || e->op == ir::ExprOp::FloorMod;
  if (!divides || e->dtype != DType::Int64 || !e->args[1]->is_constant()) return 0;
  if (!axis->extent()->is_constant() || !e->args[0]->depends_on(axis)) return 0;
  const auto affine = affine_in(pool, e->args[0], axis);
  if (!affine || !affine->stride->is_constant() || affine->stride->integer <= 0) return 0;
  const int64_t k = e->args[1]->integer, stride = affine->stride->integer;
  if (k <= stride || k % stride != 0) return 0;
  const int64_t divisor = k / stride, extent = axis->extent()->integer;
  return divisor < extent && extent % divisor == 0 ? divisor : 0;
}

std::optional<Digits> digits_of(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                ir::Expr body) {
  std::optional<Digits> least;
  visit(body, [&](ir::Expr e) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i]->op != ir::ExprOp::Axis) continue;
      const int64_t divisor = divisor_of(pool, e, axes[i]);
      if (divisor > 0 && (!least || divisor < least->divisor)) least = Digits{i, divisor};
    }
  });
  return least;
}

}  // namespace

std::optional<DividedStore> divide_axis(ir::ExprPool& pool, const std::vector<ir::Expr>& axes,
                                        const Store& store) {
  const auto digits = digits_of(pool, axes, store.body);
  if (!digits) return std::nullopt;
  ir::Expr axis = axes[digits->axis], divisor = pool.integer(digits->divisor);
  ir::Expr quotient = pool.axis("q", pool.integer(axis->extent()->integer / digits->divisor));
  ir::Expr remainder = pool.axis("r", divisor);
  const std::vector<std::pair<ir::Expr, ir::Expr>> moved = {
      {axis, pool.add(pool.mul(quotient, divisor), remainder)}};
  DividedStore result{axes, store};
  result.axes[digits->axis] = quotient;
  result.axes.insert(result.axes.begin() + static_cast<long>(digits->axis) + 1, remainder);
  result.store.body = pool.substitute(store.body, moved);
  result.store.offset = pool.substitute(store.offset, moved);
  return result;
}

}  // namespace redfuser::codegen
