#include "cascade/algebra/decomposer.h"

#include <limits>

#include "cascade/algebra/nan_condition.h"
#include "cascade/algebra/terms.h"

namespace redfuser::cascade {

static DType state_of(ir::Expr e) { return state_dtype(e->dtype); }

// The select s inside f(s), 1/s or exp(s + ..) that mixes streamed elements with results:
// f(select(c, a, b)) = select(c, f(a), f(b)). Linear operations expand their select by themselves.
ir::Expr Decomposer::inner_choice(ir::Expr e) {
  switch (e->op) {
    case ir::ExprOp::Exp:
      return summand_choice(e->args[0]);
    case ir::ExprOp::Div:
      return choice(e->args[1]);
    case ir::ExprOp::Neg:
    case ir::ExprOp::Cast:
      return nullptr;
    default:
      return e->op == ir::ExprOp::Pow || (e->args.size() == 1 && is_float(e->dtype))
                 ? choice(e->args[0])
                 : nullptr;
  }
}

ir::Expr Decomposer::choice(ir::Expr e) const {
  while (transparent(e)) e = e->args[0];
  return e->op == ir::ExprOp::Select && scope_.mixed(e) ? e : nullptr;
}

ir::Expr Decomposer::summand_choice(ir::Expr e) {
  if (e->op != ir::ExprOp::Add && e->op != ir::ExprOp::Sub && e->op != ir::ExprOp::Neg)
    return choice(e);
  const auto known = summand_choices_.find(e);
  if (known != summand_choices_.end()) return known->second;
  ir::Expr found = nullptr;
  for (size_t i = 0; !found && i < e->args.size(); ++i) found = summand_choice(e->args[i]);
  summand_choices_.emplace(e, found);
  return found;
}

// select(c, a, b) = [c]·a + [¬c]·b, with [c] a factor of whichever side c depends on.
Decomposer::Terms Decomposer::select(ir::Expr e, ir::Expr condition, ir::Expr a, ir::Expr b) {
  switch (condition->op) {
    case ir::ExprOp::Not:
      return select(e, condition->args[0], b, a);
    case ir::ExprOp::And:
      if (scope_.mixed(condition)) {
        return select(e, condition->args[0], pool_.select(condition->args[1], a, b), b);
      }
      break;
    case ir::ExprOp::Or:
      if (scope_.mixed(condition)) {
        return select(e, condition->args[0], a, pool_.select(condition->args[1], a, b));
      }
      break;
    case ir::ExprOp::IsNaN:
      if (scope_.mixed(condition)) {
        ir::Expr guard = nan_guard(condition->args[0], a->is_constant(0));
        return guard ? select(e, guard, a, b) : std::nullopt;
      }
      break;
    default:
      break;
  }
  if (scope_.mixed(condition)) {
    return refuse(e, "a condition compares the streamed element with an earlier result: " +
                         to_string(pool_, condition));
  }
  Terms then = terms(a), otherwise = terms(b);
  if (!then || !otherwise) return std::nullopt;
  std::vector<Term> result;
  for (Term& term : *then) {
    if (term.coefficient != 0) result.push_back(guarded(term, condition, true));
  }
  for (Term& term : *otherwise) {
    if (term.coefficient != 0) result.push_back(guarded(term, condition, false));
  }
  if (result.empty()) {
    Term zero;
    zero.coefficient = 0;
    result.push_back(zero);
  }
  return result;
}

Term Decomposer::guarded(Term term, ir::Expr condition, bool when) {
  auto keep = [&](ir::Expr value, double otherwise) {
    ir::Expr other = pool_.number(otherwise, value->dtype);
    return when ? pool_.select(condition, value, other) : pool_.select(condition, other, value);
  };
  const DType dtype = DType::Float32;
  if (!scope_.streamed(condition)) {
    term.guards.push_back(when ? condition : pool_.make(ir::ExprOp::Not, {condition}));
  } else if (term.exp_x.empty()) {
    ir::Expr x =
        term.x.empty() ? pool_.number(1, dtype) : product(pool_, term.x, state_of(term.x[0]));
    term.x = {keep(x, 0)};
  } else {
    // A masked exponent must not overflow: exp(-inf) = 0.
    term.exp_x = {keep(sum(pool_, term.exp_x, state_of(term.exp_x[0])),
                       -std::numeric_limits<double>::infinity())};
    if (!term.x.empty()) term.x = {keep(product(pool_, term.x, state_of(term.x[0])), 0)};
  }
  return term;
}

ir::Expr Decomposer::nan_guard(ir::Expr e, bool zero_instead) {
  Terms inner = terms(e);
  if (!inner) return nullptr;
  if (inner->size() != 1 || !inner->front().guards.empty()) {
    refuse(e, "a NaN test of a sum of streamed and earlier values");
    return nullptr;
  }
  ir::Expr guard = nan_condition(scope_, inner->front(), zero_instead);
  if (!guard)
    refuse(e, "a NaN test of a value that no earlier sum contains: " + to_string(pool_, e));
  return guard;
}

}  // namespace redfuser::cascade
