#include "cascade/algebra.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "cascade/nan_condition.h"

namespace redfuser {

bool StageScope::streamed(Expr expr) const {
  return expr->depends_on(stream) || std::any_of(columns.begin(), columns.end(), [&](Expr column) {
           return expr->depends_on(column);
         });
}

bool StageScope::results(Expr expr) const { return expr->has_leaf; }

namespace {

constexpr size_t kMaxTerms = 32;

class Decomposer {
 public:
  explicit Decomposer(const StageScope& scope) : scope_(scope), pool_(scope.pool) {}

  using Terms = std::optional<std::vector<Term>>;
  Refusal refusal;

  Terms terms(Expr e) {
    if (!scope_.mixed(e)) return leaf(e);
    if (Expr choice = inner_choice(e)) {
      return select(e, choice->args[0], pool_.substitute(e, {{choice, choice->args[1]}}),
                    pool_.substitute(e, {{choice, choice->args[2]}}));
    }
    switch (e->op) {
      case ExprOp::Add:
      case ExprOp::Sub:
        return add(e);
      case ExprOp::Mul: {
        Terms result = terms(e->args[0]);
        for (size_t i = 1; result && i < e->args.size(); ++i) {
          result = multiply(e, result, terms(e->args[i]));
        }
        return result;
      }
      case ExprOp::Div:
        return multiply(e, terms(e->args[0]), inverse(e, e->args[1]));
      case ExprOp::Reciprocal:
        return inverse(e, e->args[0]);
      case ExprOp::Neg:
        return scale(terms(e->args[0]), -1);
      case ExprOp::Exp:
        return exponential(e);
      case ExprOp::Log:
        return logarithm(e);
      case ExprOp::Sqrt:
        return power(e, terms(e->args[0]), 0.5);
      case ExprOp::Abs:
        return factorwise(e, terms(e->args[0]), ExprOp::Abs);
      case ExprOp::Pow:
        return pow(e);
      case ExprOp::Select:
        return select(e, e->args[0], e->args[1], e->args[2]);
      case ExprOp::Cast:
        return cast(e);
      default:
        return refuse(e);
    }
  }

 private:
  Terms refuse(Expr e, const std::string& reason = "") {
    if (refusal.reason.empty()) {
      refusal.blame = e;
      refusal.reason = !reason.empty() ? reason
                                       : "no product of a part of the streamed element and a part "
                                         "of earlier results: " +
                                             to_string(pool_, e);
    }
    return std::nullopt;
  }

  Terms leaf(Expr e) {
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
  // equal factors of different terms meet.
  void append_streamed_factors(Expr e, Term& term) {
    if (e->op == ExprOp::Mul && is_float(e->dtype)) {
      for (Expr arg : e->args) {
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
    } else if (e->op == ExprOp::Exp) {
      term.exp_x.push_back(e->args[0]);
    } else if (const int power = small_power(e)) {
      for (int i = 0; i < power; ++i) append_streamed_factors(e->args[0], term);
    } else {
      term.x.push_back(e);
    }
  }

  // p of u^p with constant p in 2..4, else 0.
  static int small_power(Expr e) {
    if (e->op != ExprOp::Pow) return 0;
    for (int p = 2; p <= 4; ++p) {
      if (e->args[1]->is_constant(p)) return p;
    }
    return 0;
  }

  void append_row_factors(Expr e, Term& term) {
    if (e->op == ExprOp::Div && is_float(e->dtype)) {
      append_row_factors(e->args[0], term);
      term.d_inverse.push_back(e->args[1]);
    } else if (e->op == ExprOp::Reciprocal) {
      term.d_inverse.push_back(e->args[0]);
    } else if (e->is_constant() && is_float(e->dtype)) {
      term.coefficient *= e->number;
    } else {
      term.d.push_back(e);
    }
  }

  Terms add(Expr e) {
    Terms left = terms(e->args[0]);
    if (!left) return left;
    for (size_t i = 1; i < e->args.size(); ++i) {
      Terms right = terms(e->args[i]);
      if (e->op == ExprOp::Sub) right = scale(right, -1);
      if (!right) return right;
      left->insert(left->end(), right->begin(), right->end());
    }
    return left->size() > kMaxTerms ? refuse(e, "the expansion has too many terms") : left;
  }

  static Terms scale(Terms terms, double factor) {
    if (terms) {
      for (Term& term : *terms) term.coefficient *= factor;
    }
    return terms;
  }

  Terms multiply(Expr e, Terms a, Terms b) {
    if (!a || !b) return std::nullopt;
    std::vector<Term> result;
    for (const Term& left : *a) {
      for (const Term& right : *b) {
        Term term = left;
        term.coefficient *= right.coefficient;
        auto append = [](std::vector<Expr>& to, const std::vector<Expr>& from) {
          to.insert(to.end(), from.begin(), from.end());
        };
        append(term.x, right.x);
        append(term.d, right.d);
        append(term.d_inverse, right.d_inverse);
        append(term.exp_x, right.exp_x);
        append(term.exp_d, right.exp_d);
        append(term.guards, right.guards);
        result.push_back(std::move(term));
      }
    }
    return result.size() > kMaxTerms ? refuse(e, "the expansion has too many terms") : result;
  }

  // The select s of f(s), 1/s or exp(s + ..) that mixes: f(select(c, a, b)) = select(c, f(a),
  // f(b)). Linear operations expand their select by themselves.
  Expr inner_choice(Expr e) const {
    switch (e->op) {
      case ExprOp::Exp:
        return summand_choice(e->args[0]);
      case ExprOp::Div:
        return choice(e->args[1]);
      case ExprOp::Neg:
      case ExprOp::Cast:
        return nullptr;
      default:
        return e->op == ExprOp::Pow || (e->args.size() == 1 && is_float(e->dtype))
                   ? choice(e->args[0])
                   : nullptr;
    }
  }

  // A cast between floats of 16 bits or more, whose relative rounding the algebra may skip.
  static bool transparent(Expr e) {
    return e->op == ExprOp::Cast && is_float(e->dtype) && is_float(e->args[0]->dtype) &&
           size_of(e->dtype) >= 2;
  }

  Expr choice(Expr e) const {
    while (transparent(e)) e = e->args[0];
    return e->op == ExprOp::Select && scope_.mixed(e) ? e : nullptr;
  }

  Expr summand_choice(Expr e) const {
    if (e->op != ExprOp::Add && e->op != ExprOp::Sub && e->op != ExprOp::Neg) return choice(e);
    for (Expr arg : e->args) {
      if (Expr found = summand_choice(arg)) return found;
    }
    return nullptr;
  }

  // 1/(a/b) = b/a
  Terms inverse(Expr e, Expr divisor) {
    if (divisor->op == ExprOp::Div && scope_.mixed(divisor)) {
      return multiply(e, terms(divisor->args[1]), inverse(e, divisor->args[0]));
    }
    return inverse(e, terms(divisor));
  }

  // 1/(xd·exp(a)) = x⁻¹·d⁻¹·exp(-a); a sum has no such form.
  Terms inverse(Expr e, Terms terms) {
    if (!terms) return terms;
    if (terms->size() != 1 || !terms->front().guards.empty()) {
      return refuse(e,
                    "the divisor is a sum that mixes the streamed element with earlier results: " +
                        to_string(pool_, e));
    }
    Term term = terms->front();
    term.coefficient = 1 / term.coefficient;
    std::swap(term.d, term.d_inverse);
    for (Expr& x : term.x) x = pool_.make(ExprOp::Reciprocal, {x});
    for (Expr& x : term.exp_x) x = pool_.make(ExprOp::Neg, {x});
    for (Expr& d : term.exp_d) d = pool_.make(ExprOp::Neg, {d});
    return std::vector{term};
  }

  Expr exponent_piece(const Term& term, DType dtype) {
    Expr piece = pool_.mul(product(pool_, term.x, dtype), product(pool_, term.d, dtype));
    if (term.x.empty()) piece = product(pool_, term.d, dtype);
    if (term.d.empty()) piece = product(pool_, term.x, dtype);
    if (!term.exp_x.empty() || !term.exp_d.empty()) {
      piece = pool_.mul(piece, pool_.make(ExprOp::Exp, {pool_.add(sum(pool_, term.exp_x, dtype),
                                                                  sum(pool_, term.exp_d, dtype))}));
    }
    if (!term.d_inverse.empty()) {
      piece = pool_.div(piece, product(pool_, term.d_inverse, dtype));
    }
    if (term.coefficient == -1) return pool_.make(ExprOp::Neg, {piece});
    if (term.coefficient == 1) return piece;
    return pool_.mul(piece, pool_.number(term.coefficient, dtype));
  }

  // exp(Σ pieces) with every piece pure.
  Terms exponential(Expr e) {
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

  // Splits sums of row values too, so that exp(s - (m + log l)) shows its maximum.
  Terms additive(Expr e) {
    if (transparent(e)) return additive(e->args[0]);
    if (e->op == ExprOp::Neg) return scale(additive(e->args[0]), -1);
    if (scope_.mixed(e) && e->op != ExprOp::Add && e->op != ExprOp::Sub) return terms(e);
    if (e->has_leaf && (e->op == ExprOp::Add || e->op == ExprOp::Sub) && is_float(e->dtype)) {
      Terms left = additive(e->args[0]);
      Terms right = additive(e->args[1]);
      if (!left || !right) return std::nullopt;
      if (e->op == ExprOp::Sub) right = scale(right, -1);
      left->insert(left->end(), right->begin(), right->end());
      return left;
    }
    if (scope_.mixed(e)) return terms(e);
    Term term;
    (scope_.streamed(e) ? term.x : term.d).push_back(e);
    return std::vector{term};
  }

  // log(xd·exp(a + b)) = log x + log d + a + b
  Terms logarithm(Expr e) {
    Terms inner = terms(e->args[0]);
    if (!inner) return inner;
    if (inner->size() != 1 || inner->front().coefficient <= 0 || !inner->front().guards.empty()) {
      return refuse(
          e, "the logarithm of a sum of streamed and earlier values: " + to_string(pool_, e));
    }
    const Term& term = inner->front();
    std::vector<Term> result;
    auto push = [&](Expr x, Expr d, double coefficient) {
      Term piece;
      piece.coefficient = coefficient;
      if (x) piece.x.push_back(x);
      if (d) piece.d.push_back(d);
      result.push_back(std::move(piece));
    };
    auto log = [&](Expr value) { return pool_.make(ExprOp::Log, {value}); };
    for (Expr x : term.x) push(log(x), nullptr, 1);
    for (Expr d : term.d) push(nullptr, log(d), 1);
    for (Expr d : term.d_inverse) push(nullptr, log(d), -1);
    for (Expr x : term.exp_x) push(x, nullptr, 1);
    for (Expr d : term.exp_d) push(nullptr, d, 1);
    if (term.coefficient != 1) {
      push(nullptr, pool_.number(std::log(term.coefficient), state_dtype(e->dtype)), 1);
    }
    return result;
  }

  // (c·xd·exp(a))^p = c^p·x^p·d^p·exp(p·a)
  Terms power(Expr e, Terms terms, double exponent) {
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
    auto raise = [&](Expr value) {
      return exponent == 0.5
                 ? pool_.make(ExprOp::Sqrt, {value})
                 : pool_.make(ExprOp::Pow, {value, pool_.number(exponent, value->dtype)});
    };
    auto times = [&](Expr value) { return pool_.mul(value, pool_.number(exponent, value->dtype)); };
    for (auto* list : {&term.x, &term.d, &term.d_inverse}) {
      for (Expr& value : *list) value = raise(value);
    }
    for (auto* list : {&term.exp_x, &term.exp_d}) {
      for (Expr& value : *list) value = times(value);
    }
    return std::vector{term};
  }

  Terms factorwise(Expr e, Terms terms, ExprOp op) {
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
      for (Expr& value : *list) value = pool_.make(op, {value});
    }
    return std::vector{term};
  }

  Terms pow(Expr e) {
    Expr exponent = e->args[1];
    while (exponent->op == ExprOp::Cast) exponent = exponent->args[0];
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

  Terms cast(Expr e) {
    Expr inner = e->args[0];
    if (transparent(e)) return terms(inner);
    if (is_float(e->dtype) && inner->op == ExprOp::Cast) return cast(inner);
    return refuse(e, fmt::format("a value that depends on an earlier result is rounded to {}",
                                 name_of(e->dtype)));
  }

  // select(c, a, b) = [c]·a + [¬c]·b, with [c] a factor of whichever side c depends on.
  Terms select(Expr e, Expr condition, Expr a, Expr b) {
    switch (condition->op) {
      case ExprOp::Not:
        return select(e, condition->args[0], b, a);
      case ExprOp::And:
        if (scope_.mixed(condition)) {
          return select(e, condition->args[0], pool_.select(condition->args[1], a, b), b);
        }
        break;
      case ExprOp::Or:
        if (scope_.mixed(condition)) {
          return select(e, condition->args[0], a, pool_.select(condition->args[1], a, b));
        }
        break;
      case ExprOp::IsNaN:
        if (scope_.mixed(condition)) {
          Expr guard = nan_guard(condition->args[0], a->is_constant(0));
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

  Term guarded(Term term, Expr condition, bool when) {
    auto keep = [&](Expr value, double otherwise) {
      Expr other = pool_.number(otherwise, value->dtype);
      return when ? pool_.select(condition, value, other) : pool_.select(condition, other, value);
    };
    const DType dtype = DType::Float32;
    if (!scope_.streamed(condition)) {
      term.guards.push_back(when ? condition : pool_.make(ExprOp::Not, {condition}));
    } else if (term.exp_x.empty()) {
      Expr x = term.x.empty() ? pool_.number(1, dtype) : product(pool_, term.x, state(term.x[0]));
      term.x = {keep(x, 0)};
    } else {
      // A masked exponent must not overflow: exp(-inf) = 0.
      term.exp_x = {keep(sum(pool_, term.exp_x, state(term.exp_x[0])),
                         -std::numeric_limits<double>::infinity())};
      if (!term.x.empty()) term.x = {keep(product(pool_, term.x, state(term.x[0])), 0)};
    }
    return term;
  }

  static DType state(Expr e) { return state_dtype(e->dtype); }

  Expr nan_guard(Expr e, bool zero_instead) {
    Terms inner = terms(e);
    if (!inner) return nullptr;
    if (inner->size() != 1 || !inner->front().guards.empty()) {
      refuse(e, "a NaN test of a sum of streamed and earlier values");
      return nullptr;
    }
    Expr guard = nan_condition(scope_, inner->front(), zero_instead);
    if (!guard)
      refuse(e, "a NaN test of a value that no earlier sum contains: " + to_string(pool_, e));
    return guard;
  }

  const StageScope& scope_;
  ExprPool& pool_;
};

}  // namespace

std::variant<std::vector<Term>, Refusal> expand(const StageScope& scope, Expr body) {
  Decomposer decomposer(scope);
  auto terms = decomposer.terms(body);
  if (!terms) return decomposer.refusal;
  return std::move(*terms);
}

std::variant<std::vector<Term>, Refusal> decompose(const StageScope& scope, Expr body) {
  auto expanded = expand(scope, body);
  if (auto* terms = std::get_if<std::vector<Term>>(&expanded)) {
    return collect(scope, std::move(*terms));
  }
  return expanded;
}

}  // namespace redfuser
