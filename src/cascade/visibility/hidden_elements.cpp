#include "cascade/visibility/hidden_elements.h"

#include <cmath>

namespace redfuser::cascade {
namespace {

bool positive(ir::Expr e) { return e->is_constant() && is_float(e->dtype) && e->number > 0; }

class Conditions {
 public:
  explicit Conditions(ir::ExprPool& pool) : pool_(pool) {}

  // e = sign · infinity, or NaN.
  ir::Expr infinite(ir::Expr e, double sign) {
    const auto arg = [&](size_t i, double s) { return infinite(e->args[i], s); };
    switch (e->op) {
      case ir::ExprOp::Constant:
        return pool_.boolean(is_float(e->dtype) && std::isinf(e->number) && e->number * sign > 0);
      case ir::ExprOp::Cast:
        return is_float(e->dtype) && is_float(e->args[0]->dtype) ? arg(0, sign) : never();
      case ir::ExprOp::Neg:
        return arg(0, -sign);
      case ir::ExprOp::Add:
        return either(arg(0, sign), arg(1, sign));
      case ir::ExprOp::Sub:
        return arg(0, sign);
      case ir::ExprOp::Mul:
        return either(positive(e->args[1]) ? arg(0, sign) : never(),
                      positive(e->args[0]) ? arg(1, sign) : never());
      case ir::ExprOp::Div:
        return positive(e->args[1]) ? arg(0, sign) : never();
      case ir::ExprOp::Select:
        return selected(e->args[0], arg(1, sign), arg(2, sign));
      default:
        return never();
    }
  }

  ir::Expr zero(ir::Expr e) {
    const auto arg = [&](size_t i) { return zero(e->args[i]); };
    switch (e->op) {
      case ir::ExprOp::Constant:
        return pool_.boolean(e->is_constant(0));
      case ir::ExprOp::Cast:
      case ir::ExprOp::Neg:
      case ir::ExprOp::Div:
        return arg(0);
      case ir::ExprOp::Exp:
        return infinite(e->args[0], -1);
      case ir::ExprOp::Mul:
        return either(arg(0), arg(1));
      case ir::ExprOp::Select:
        return selected(e->args[0], arg(1), arg(2));
      default:
        return never();
    }
  }

  ir::Expr both(ir::Expr a, ir::Expr b) { return joined(ir::ExprOp::And, a, b, 0); }

 private:
  ir::Expr never() { return pool_.boolean(false); }
  ir::Expr either(ir::Expr a, ir::Expr b) { return joined(ir::ExprOp::Or, a, b, 1); }

  // `decisive` is the truth value that settles the operation.
  ir::Expr joined(ir::ExprOp op, ir::Expr a, ir::Expr b, int64_t decisive) {
    if (a->is_constant()) return a->integer == decisive ? a : b;
    if (b->is_constant()) return b->integer == decisive ? b : a;
    return a == b ? a : pool_.make(op, {a, b});
  }

  // Where both branches hold, whatever the condition is; it may be unknown of a tile.
  ir::Expr selected(ir::Expr condition, ir::Expr a, ir::Expr b) {
    const ir::Expr always = both(a, b);
    if (condition->has_leaf || a == b) return always;
    const ir::Expr otherwise = pool_.make(ir::ExprOp::Not, {condition});
    return either(always, either(both(condition, a), both(otherwise, b)));
  }

  ir::ExprPool& pool_;
};

}  // namespace

ir::Expr identity_condition(ir::ExprPool& pool, ir::Reduction reduction, ir::Expr lift) {
  Conditions conditions(pool);
  switch (reduction) {
    case ir::Reduction::Sum:
      return conditions.zero(lift);
    case ir::Reduction::Max:
      return conditions.infinite(lift, -1);
    case ir::Reduction::Min:
      return conditions.infinite(lift, 1);
    default:
      return pool.boolean(false);
  }
}

ir::Expr hidden_elements(ir::ExprPool& pool, const Streaming& streaming) {
  ir::Expr hidden = pool.boolean(!streaming.accumulators.empty());
  for (const Accumulator& a : streaming.accumulators) {
    hidden = Conditions(pool).both(hidden, identity_condition(pool, a.reduction, a.lift));
  }
  return hidden;
}

}  // namespace redfuser::cascade
