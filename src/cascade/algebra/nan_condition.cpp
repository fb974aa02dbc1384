#include "cascade/algebra/nan_condition.h"

#include <algorithm>

#include "cascade/algebra/sign.h"
#include "ir/ranges.h"

namespace redfuser::cascade {
namespace {

bool nonnegative(const StageScope& scope, const Term& term) {
  return term.coefficient >= 0 && std::all_of(term.x.begin(), term.x.end(), [&](ir::Expr x) {
           const Sign sign = sign_of(scope, x);
           return sign == Sign::NonNegative || sign == Sign::Positive;
         });
}

struct Summed {
  ir::Expr total = nullptr;    // d_k
  bool divides = false;        // d is 1/d_k
  std::vector<ir::Expr> rest;  // exponents of d beside it
};

// A NaN test of earlier results becomes a guard, and guarded terms have none of the forms below.
// Expanding one would require the conditions of all earlier stages.
bool is_guarded(const StageScope& scope, ir::Expr body) {
  bool found = false;
  visit(body, [&](ir::Expr e) { found |= e->op == ir::ExprOp::IsNaN && scope.mixed(e); });
  return found;
}

// The form E_l·d of the term, with `d` a factor (or exponent) that is NaN if a stage d_k = Σ E_l
// is.
std::optional<Summed> summed_by(const StageScope& scope, ir::Expr d, const Term& term, bool divisor,
                                bool exponent) {
  bool divides = divisor, negated = false, logarithm = false;
  auto power = [&](ir::Expr e) {
    return !exponent && e->op == ir::ExprOp::Pow && e->args[1]->is_constant() && e->args[1]->number;
  };
  auto sign_or_log = [&](ir::Expr e) {
    return exponent && (e->op == ir::ExprOp::Neg || e->op == ir::ExprOp::Log);
  };
  for (; d->op == ir::ExprOp::Cast || power(d) || sign_or_log(d); d = d->args[0]) {
    negated ^= d->op == ir::ExprOp::Neg;
    logarithm |= d->op == ir::ExprOp::Log;
    divides ^= power(d) && d->args[1]->number < 0;
  }
  if (d->op != ir::ExprOp::Leaf || d->leaf_kind != ir::LeafKind::Result) return std::nullopt;
  const Stage& stage = scope.stages[static_cast<size_t>(d->integer)];
  if (stage.reduction != ir::Reduction::Sum) return std::nullopt;
  if (is_guarded(scope, stage.body)) return std::nullopt;
  const auto expanded = expand(scope, stage.body);
  const auto* terms = std::get_if<std::vector<Term>>(&expanded);
  if (!terms || terms->size() != 1) return std::nullopt;
  const Term& t = terms->front();
  const bool plain = t.d.empty() && t.d_inverse.empty() && t.guards.empty();
  if (!plain || t.x != term.x || t.exp_x != term.exp_x) return std::nullopt;
  Summed summed{d, exponent ? negated && logarithm : divides, term.exp_d};
  for (ir::Expr piece : t.exp_d) {
    auto found = std::find(summed.rest.begin(), summed.rest.end(), piece);
    if (found == summed.rest.end()) return std::nullopt;
    summed.rest.erase(found);
  }
  return summed;
}

}  // namespace

ir::Expr nan_condition(const StageScope& scope, const Term& term, bool zero_instead) {
  ir::ExprPool& pool = scope.pool;
  for (const auto* list : {&term.d, &term.d_inverse, &term.exp_d}) {
    for (ir::Expr d : *list) {
      const auto summed = summed_by(scope, d, term, list == &term.d_inverse, list == &term.exp_d);
      if (!summed) continue;
      std::vector<ir::Expr> tests;
      for (const auto* factors : {&term.d, &term.d_inverse, &summed->rest}) {
        for (ir::Expr factor : *factors) tests.push_back(pool.make(ir::ExprOp::IsNaN, {factor}));
      }
      if (summed->divides && nonnegative(scope, term)) {
        ir::Expr total = summed->total;
        tests.push_back(pool.make(ir::ExprOp::Equal, {total, pool.number(0, total->dtype)}));
        if (zero_instead) tests.push_back(pool.make(ir::ExprOp::IsPosInf, {total}));
      }
      ir::Expr guard = tests[0];
      for (size_t i = 1; i < tests.size(); ++i)
        guard = pool.make(ir::ExprOp::Or, {guard, tests[i]});
      return guard;
    }
  }
  return nullptr;
}

}  // namespace redfuser::cascade
