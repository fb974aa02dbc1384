// The expansion of a body into terms, rule by rule: the rules of products and sums, of functions,
// and of selections are in the files of the same prefix.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cascade/algebra/algebra.h"

namespace redfuser {

class Decomposer {
 public:
  explicit Decomposer(const StageScope& scope) : scope_(scope), pool_(scope.pool) {}

  // nullopt: no rule applies, and `refusal` says where.
  using Terms = std::optional<std::vector<Term>>;
  Terms terms(Expr e);
  Refusal refusal;

 private:
  // decomposer.cpp: leaves, sums, products, casts.
  Terms expanded(Expr e);
  Terms refuse(Expr e, const std::string& reason = "");
  Terms leaf(Expr e);
  void append_streamed_factors(Expr e, Term& term);
  static int small_power(Expr e);
  void append_row_factors(Expr e, Term& term);
  Terms add(Expr e);
  Terms joined(Expr e, Terms left, Terms right);
  static Terms scale(Terms terms, double factor);
  Terms multiply(Expr e, Terms a, Terms b);
  static bool transparent(Expr e);
  Terms cast(Expr e);

  // decomposer_functions.cpp: quotients, exponentials, logarithms, powers.
  Terms inverse(Expr e, Expr divisor);
  Terms inverse(Expr e, Terms terms);
  Expr exponent_piece(const Term& term, DType dtype);
  Terms exponential(Expr e);
  Terms additive(Expr e);
  Terms summands(Expr e);
  Terms logarithm(Expr e);
  Terms power(Expr e, Terms terms, double exponent);
  Terms factorwise(Expr e, Terms terms, ExprOp op);
  Terms pow(Expr e);

  // decomposer_select.cpp: choices by a condition.
  Expr inner_choice(Expr e);
  Expr choice(Expr e) const;
  Expr summand_choice(Expr e);
  Terms select(Expr e, Expr condition, Expr a, Expr b);
  Term guarded(Term term, Expr condition, bool when);
  Expr nan_guard(Expr e, bool zero_instead);

  const StageScope& scope_;
  ExprPool& pool_;
  // Bodies share their parts: each is expanded once.
  std::unordered_map<Expr, Terms> terms_, summands_;
  std::unordered_map<Expr, Expr> summand_choices_;
};

}  // namespace redfuser
