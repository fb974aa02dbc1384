#include "cpu/tile/factors.h"

#include <algorithm>

namespace redfuser::cpu {
namespace {

ir::Expr strip_float_casts(ir::Expr expr) {
  while (expr->op == ir::ExprOp::Cast && is_float(expr->dtype) && is_float(expr->args[0]->dtype)) {
    expr = expr->args[0];
  }
  return expr;
}

}  // namespace

bool depends_on_any(ir::Expr expr, const std::vector<ir::Expr>& axes) {
  return std::any_of(axes.begin(), axes.end(),
                     [&](ir::Expr axis) { return expr->depends_on(axis); });
}

Factors factors_of(ir::Expr expr, const std::vector<ir::Expr>& axes) {
  Factors result;
  std::vector<ir::Expr> pending{expr};
  while (!pending.empty()) {
    ir::Expr factor = pending.back();
    pending.pop_back();
    if (!depends_on_any(factor, axes)) {
      result.free.push_back(factor);
      continue;
    }
    ir::Expr inner = strip_float_casts(factor);
    if (inner->op == ir::ExprOp::Mul && is_float(inner->dtype)) {
      for (size_t i = inner->args.size(); i-- > 0;) pending.push_back(inner->args[i]);
    } else if (inner->op == ir::ExprOp::Div && is_float(inner->dtype) &&
               !depends_on_any(inner->args[1], axes)) {
      result.divisors.push_back(inner->args[1]);
      pending.push_back(inner->args[0]);
    } else {
      result.bound.push_back(is_float(inner->dtype) ? inner : factor);
    }
  }
  return result;
}

}  // namespace redfuser::cpu
