#include "cpu/tile/factors.h"

#include <algorithm>

namespace redfuser::cpu {
namespace {

Expr strip_float_casts(Expr expr) {
  while (expr->op == ExprOp::Cast && is_float(expr->dtype) && is_float(expr->args[0]->dtype)) {
    expr = expr->args[0];
  }
  return expr;
}

}  // namespace

bool depends_on_any(Expr expr, const std::vector<Expr>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](Expr axis) { return expr->depends_on(axis); });
}

Factors factors_of(Expr expr, const std::vector<Expr>& axes) {
  Factors result;
  std::vector<Expr> pending{expr};
  while (!pending.empty()) {
    Expr factor = pending.back();
    pending.pop_back();
    if (!depends_on_any(factor, axes)) {
      result.free.push_back(factor);
      continue;
    }
    Expr inner = strip_float_casts(factor);
    if (inner->op == ExprOp::Mul && is_float(inner->dtype)) {
      for (size_t i = inner->args.size(); i-- > 0;) pending.push_back(inner->args[i]);
    } else if (inner->op == ExprOp::Div && is_float(inner->dtype) &&
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
