#include "cascade/algebra/decomposer.h"

#include <algorithm>

#include "base/error.h"

namespace redfuser::cascade {

static constexpr size_t kMaxTerms = 32;
// Expressions expanded for one body: each select may double the number of terms.
static constexpr size_t kMaxExpanded = 4096;
// Factors of one term: nested products of shared factors have exponentially many.
static constexpr size_t kMaxFactors = 64;

Decomposer::Terms Decomposer::terms(ir::Expr e) {
  const auto known = terms_.find(e);
  if (known != terms_.end()) return known->second;
  if (terms_.size() >= kMaxExpanded) return refuse(e, "the expansion has too many steps");
  Terms result = expanded(e);
  terms_.emplace(e, result);
  return result;
}

Decomposer::Terms Decomposer::expanded(ir::Expr e) {
  if (!scope_.mixed(e)) return leaf(e);
  if (ir::Expr choice = inner_choice(e)) {
    return select(e, choice->args[0], pool_.substitute(e, {{choice, choice->args[1]}}),
                  pool_.substitute(e, {{choice, choice->args[2]}}));
  }
  switch (e->op) {
    case ir::ExprOp::Add:
    case ir::ExprOp::Sub:
      return add(e);
    case ir::ExprOp::Mul: {
      Terms result = terms(e->args[0]);
      for (size_t i = 1; result && i < e->args.size(); ++i) {
        result = multiply(e, result, terms(e->args[i]));
      }
      return result;
    }
    case ir::ExprOp::Div:
      return multiply(e, terms(e->args[0]), inverse(e, e->args[1]));
    case ir::ExprOp::Reciprocal:
      return inverse(e, e->args[0]);
    case ir::ExprOp::Neg:
      return scale(terms(e->args[0]), -1);
    case ir::ExprOp::Exp:
      return exponential(e);
    case ir::ExprOp::Log:
      return logarithm(e);
    case ir::ExprOp::Sqrt:
      return power(e, terms(e->args[0]), 0.5);
    case ir::ExprOp::Abs:
      return factorwise(e, terms(e->args[0]), ir::ExprOp::Abs);
    case ir::ExprOp::Pow:
      return pow(e);
    case ir::ExprOp::Select:
      return select(e, e->args[0], e->args[1], e->args[2]);
    case ir::ExprOp::Cast:
      return cast(e);
    default:
      return refuse(e);
  }
}

Decomposer::Terms Decomposer::refuse(ir::Expr e, const std::string& reason) {
  if (refusal.reason.empty()) {
    refusal.blame = e;
    refusal.reason = !reason.empty() ? reason
                                     : "no product of a part of the streamed element and a part "
                                       "of earlier results: " +
                                           to_string(pool_, e);
  }
  return std::nullopt;
}

Decomposer::Terms Decomposer::leaf(ir::Expr e) {
  Term term;
  if (e->is_constant() && is_float(e->dtype)) {
    term.coefficient = e->number;
  } else if (scope_.streamed(e)) {
    append_streamed_factors(e, term);
  } else {
    append_row_factors(e, term);
  }
  return std::vector{term};
}

// Products are kept as separate factors, so that a contraction's operand stays recognisable and
// equal factors of different terms are found.
void Decomposer::append_streamed_factors(ir::Expr e, Term& term) {
  if (term.x.size() + term.d.size() + term.exp_x.size() >= kMaxFactors) {
    term.x.push_back(e);
  } else if (e->op == ir::ExprOp::Mul && is_float(e->dtype)) {
    for (ir::Expr arg : e->args) {
      if (scope_.streamed(arg)) {
        append_streamed_factors(arg, term);
      } else if (arg->is_constant()) {
        term.coefficient *= arg->number;
      } else {
        term.d.push_back(arg);
      }
    }
  } else if (transparent(e)) {
    append_streamed_factors(e->args[0], term);
  } else if (e->op == ir::ExprOp::Exp) {
    term.exp_x.push_back(e->args[0]);
  } else if (const int power = small_power(e)) {
    for (int i = 0; i < power; ++i) append_streamed_factors(e->args[0], term);
  } else {
    term.x.push_back(e);
  }
}

// p of u^p with constant p in 2..4, else 0.
int Decomposer::small_power(ir::Expr e) {
  if (e->op != ir::ExprOp::Pow) return 0;
  for (int p = 2; p <= 4; ++p) {
    if (e->args[1]->is_constant(p)) return p;
  }
  return 0;
}

void Decomposer::append_row_factors(ir::Expr e, Term& term) {
  if (e->op == ir::ExprOp::Div && is_float(e->dtype)) {
    append_row_factors(e->args[0], term);
    term.d_inverse.push_back(e->args[1]);
  } else if (e->op == ir::ExprOp::Reciprocal) {
    term.d_inverse.push_back(e->args[0]);
  } else if (e->is_constant() && is_float(e->dtype)) {
    term.coefficient *= e->number;
  } else {
    term.d.push_back(e);
  }
}

Decomposer::Terms Decomposer::add(ir::Expr e) {
  Terms left = terms(e->args[0]);
  if (!left) return left;
  for (size_t i = 1; i < e->args.size(); ++i) {
    Terms right = terms(e->args[i]);
    if (e->op == ir::ExprOp::Sub) right = scale(right, -1);
    left = joined(e, std::move(left), std::move(right));
    if (!left) return left;
  }
  return left;
}

// a + a = 2·a, so that nested sums of shared terms stay one term. Terms that cancel are kept, since
// inf - inf is NaN.
Decomposer::Terms Decomposer::joined(ir::Expr e, Terms left, Terms right) {
  if (!left || !right) return std::nullopt;
  for (Term& term : *right) {
    const auto same = std::find_if(left->begin(), left->end(), [&](const Term& other) {
      return other.x == term.x && other.d == term.d && other.d_inverse == term.d_inverse &&
             other.exp_x == term.exp_x && other.exp_d == term.exp_d &&
             other.guards == term.guards && other.coefficient * term.coefficient > 0;
    });
    if (same == left->end()) {
      left->push_back(std::move(term));
    } else {
      same->coefficient += term.coefficient;
    }
  }
  return left->size() > kMaxTerms ? refuse(e, "the expansion has too many terms") : left;
}

static bool has_many_factors(const Term& term) {
  return term.x.size() + term.d.size() + term.d_inverse.size() + term.exp_x.size() +
             term.exp_d.size() + term.guards.size() >
         kMaxFactors;
}

Decomposer::Terms Decomposer::scale(Terms terms, double factor) {
  if (terms) {
    for (Term& term : *terms) term.coefficient *= factor;
  }
  return terms;
}

Decomposer::Terms Decomposer::multiply(ir::Expr e, Terms a, Terms b) {
  if (!a || !b) return std::nullopt;
  std::vector<Term> result;
  for (const Term& left : *a) {
    for (const Term& right : *b) {
      Term term = left;
      term.coefficient *= right.coefficient;
      auto append = [](std::vector<ir::Expr>& to, const std::vector<ir::Expr>& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(term.x, right.x);
      append(term.d, right.d);
      append(term.d_inverse, right.d_inverse);
      append(term.exp_x, right.exp_x);
      append(term.exp_d, right.exp_d);
      append(term.guards, right.guards);
      if (has_many_factors(term)) return refuse(e, "a term has too many factors");
      result.push_back(std::move(term));
    }
  }
  return result.size() > kMaxTerms ? refuse(e, "the expansion has too many terms") : result;
}

// A cast between floats of 16 bits or more, whose relative rounding the algebra may skip.
bool Decomposer::transparent(ir::Expr e) {
  return e->op == ir::ExprOp::Cast && is_float(e->dtype) && is_float(e->args[0]->dtype) &&
         size_of(e->dtype) >= 2;
}

Decomposer::Terms Decomposer::cast(ir::Expr e) {
  ir::Expr inner = e->args[0];
  if (transparent(e)) return terms(inner);
  if (is_float(e->dtype) && inner->op == ir::ExprOp::Cast) return cast(inner);
  return refuse(e, fmt::format("a value that depends on an earlier result is rounded to {}",
                               name_of(e->dtype)));
}

}  // namespace redfuser::cascade
