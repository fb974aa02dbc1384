#include "cascade/algebra/decomposer.h"
#include "cascade/algebra/terms.h"

#include <cmath>

namespace redfuser::cascade {

// 1/(a/b) = b/a
Decomposer::Terms Decomposer::inverse(ir::Expr e, ir::Expr divisor) {
  if (divisor->op == ir::ExprOp::Div && scope_.mixed(divisor)) {
    return multiply(e, terms(divisor->args[1]), inverse(e, divisor->args[0]));
  }
  return inverse(e, terms(divisor));
}

// 1/(xd·exp(a)) = x⁻¹·d⁻¹·exp(-a), for a single term.
Decomposer::Terms Decomposer::inverse(ir::Expr e, Terms terms) {
  if (!terms) return terms;
  if (terms->size() != 1 || !terms->front().guards.empty()) {
    return refuse(e, "the divisor is a sum that mixes the streamed element with earlier results: " +
                         to_string(pool_, e));
  }
  Term term = terms->front();
  term.coefficient = 1 / term.coefficient;
  std::swap(term.d, term.d_inverse);
  for (ir::Expr& x : term.x) x = pool_.make(ir::ExprOp::Reciprocal, {x});
  for (ir::Expr& x : term.exp_x) x = pool_.make(ir::ExprOp::Neg, {x});
  for (ir::Expr& d : term.exp_d) d = pool_.make(ir::ExprOp::Neg, {d});
  return std::vector{term};
}

ir::Expr Decomposer::exponent_piece(const Term& term, DType dtype) {
  ir::Expr piece = pool_.mul(product(pool_, term.x, dtype), product(pool_, term.d, dtype));
  if (term.x.empty()) piece = product(pool_, term.d, dtype);
  if (term.d.empty()) piece = product(pool_, term.x, dtype);
  if (!term.exp_x.empty() || !term.exp_d.empty()) {
    piece =
        pool_.mul(piece, pool_.make(ir::ExprOp::Exp, {pool_.add(sum(pool_, term.exp_x, dtype),
                                                                sum(pool_, term.exp_d, dtype))}));
  }
  if (!term.d_inverse.empty()) {
    piece = pool_.div(piece, product(pool_, term.d_inverse, dtype));
  }
  if (term.coefficient == -1) return pool_.make(ir::ExprOp::Neg, {piece});
  if (term.coefficient == 1) return piece;
  return pool_.mul(piece, pool_.number(term.coefficient, dtype));
}

// exp(Σ pieces), where each piece depends on streamed elements or on results, not on both.
Decomposer::Terms Decomposer::exponential(ir::Expr e) {
  Terms pieces = additive(e->args[0]);
  if (!pieces) return pieces;
  const DType dtype = state_dtype(e->dtype);
  Term term;
  for (const Term& piece : *pieces) {
    const bool streamed = !piece.x.empty() || !piece.exp_x.empty();
    if ((streamed && piece.uses_results()) || !piece.guards.empty()) {
      return refuse(e, "an exponent multiplies the streamed element by an earlier result: " +
                           to_string(pool_, e));
    }
    (piece.uses_results() ? term.exp_d : term.exp_x).push_back(exponent_piece(piece, dtype));
  }
  return std::vector{term};
}

// Splits sums of row values too, so that the maximum in exp(s - (m + log l)) is found.
Decomposer::Terms Decomposer::additive(ir::Expr e) {
  const auto known = summands_.find(e);
  if (known != summands_.end()) return known->second;
  Terms result = summands(e);
  summands_.emplace(e, result);
  return result;
}

Decomposer::Terms Decomposer::summands(ir::Expr e) {
  if (transparent(e)) return additive(e->args[0]);
  if (e->op == ir::ExprOp::Neg) return scale(additive(e->args[0]), -1);
  if (scope_.mixed(e) && e->op != ir::ExprOp::Add && e->op != ir::ExprOp::Sub) return terms(e);
  if (e->has_leaf && (e->op == ir::ExprOp::Add || e->op == ir::ExprOp::Sub) && is_float(e->dtype)) {
    Terms left = additive(e->args[0]);
    Terms right = additive(e->args[1]);
    if (e->op == ir::ExprOp::Sub) right = scale(right, -1);
    return joined(e, std::move(left), std::move(right));
  }
  if (scope_.mixed(e)) return terms(e);
  Term term;
  (scope_.streamed(e) ? term.x : term.d).push_back(e);
  return std::vector{term};
}

// log(xd·exp(a + b)) = log x + log d + a + b
Decomposer::Terms Decomposer::logarithm(ir::Expr e) {
  Terms inner = terms(e->args[0]);
  if (!inner) return inner;
  if (inner->size() != 1 || inner->front().coefficient <= 0 || !inner->front().guards.empty()) {
    return refuse(e,
                  "the logarithm of a sum of streamed and earlier values: " + to_string(pool_, e));
  }
  const Term& term = inner->front();
  std::vector<Term> result;
  auto push = [&](ir::Expr x, ir::Expr d, double coefficient) {
    Term piece;
    piece.coefficient = coefficient;
    if (x) piece.x.push_back(x);
    if (d) piece.d.push_back(d);
    result.push_back(std::move(piece));
  };
  auto log = [&](ir::Expr value) { return pool_.make(ir::ExprOp::Log, {value}); };
  for (ir::Expr x : term.x) push(log(x), nullptr, 1);
  for (ir::Expr d : term.d) push(nullptr, log(d), 1);
  for (ir::Expr d : term.d_inverse) push(nullptr, log(d), -1);
  for (ir::Expr x : term.exp_x) push(x, nullptr, 1);
  for (ir::Expr d : term.exp_d) push(nullptr, d, 1);
  if (term.coefficient != 1) {
    push(nullptr, pool_.number(std::log(term.coefficient), state_dtype(e->dtype)), 1);
  }
  return result;
}

// (c·xd·exp(a))^p = c^p·x^p·d^p·exp(p·a)
Decomposer::Terms Decomposer::power(ir::Expr e, Terms terms, double exponent) {
  if (!terms) return terms;
  if (terms->size() != 1 || (!terms->front().guards.empty() && exponent <= 0)) {
    return refuse(e,
                  "a power or root of a sum that mixes the streamed element with earlier "
                  "results: " +
                      to_string(pool_, e));
  }
  Term term = terms->front();
  if (term.coefficient < 0) return refuse(e, "a power of a value of unproved sign");
  term.coefficient = std::pow(term.coefficient, exponent);
  auto raise = [&](ir::Expr value) {
    return exponent == 0.5
               ? pool_.make(ir::ExprOp::Sqrt, {value})
               : pool_.make(ir::ExprOp::Pow, {value, pool_.number(exponent, value->dtype)});
  };
  auto times = [&](ir::Expr value) {
    return pool_.mul(value, pool_.number(exponent, value->dtype));
  };
  for (auto* list : {&term.x, &term.d, &term.d_inverse}) {
    for (ir::Expr& value : *list) value = raise(value);
  }
  for (auto* list : {&term.exp_x, &term.exp_d}) {
    for (ir::Expr& value : *list) value = times(value);
  }
  return std::vector{term};
}

Decomposer::Terms Decomposer::factorwise(ir::Expr e, Terms terms, ir::ExprOp op) {
  if (!terms) return terms;
  if (terms->size() != 1) {
    return refuse(e,
                  "an absolute value of a sum that mixes the streamed element with earlier "
                  "results: " +
                      to_string(pool_, e));
  }
  Term term = terms->front();
  term.coefficient = std::abs(term.coefficient);
  for (auto* list : {&term.x, &term.d, &term.d_inverse}) {
    for (ir::Expr& value : *list) value = pool_.make(op, {value});
  }
  return std::vector{term};
}

Decomposer::Terms Decomposer::pow(ir::Expr e) {
  ir::Expr exponent = e->args[1];
  while (exponent->op == ir::ExprOp::Cast) exponent = exponent->args[0];
  if (!exponent->is_constant()) return refuse(e, "the exponent of a power is not a constant");
  const double p =
      is_float(exponent->dtype) ? exponent->number : static_cast<double>(exponent->integer);
  Terms base = terms(e->args[0]);
  if (!base || (base->size() == 1 && base->front().coefficient > 0 && p != std::floor(p))) {
    return power(e, base, p);
  }
  if (p != std::floor(p) || std::abs(p) > 8 || p == 0) return power(e, base, p);
  Terms result = base;
  for (int i = 1; i < std::abs(p); ++i) result = multiply(e, result, base);
  return p < 0 ? inverse(e, result) : result;
}

}  // namespace redfuser::cascade
