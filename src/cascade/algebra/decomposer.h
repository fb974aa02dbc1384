// The expansion of a body into terms, rule by rule: the rules of products and sums, of functions,
// and of selections are in the files of the same prefix.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cascade/algebra/algebra.h"

namespace redfuser::cascade {

class Decomposer {
 public:
  explicit Decomposer(const StageScope& scope) : scope_(scope), pool_(scope.pool) {}

  // nullopt: no rule applies, and `refusal` says where.
  using Terms = std::optional<std::vector<Term>>;
  Terms terms(ir::Expr e);
  Refusal refusal;

 private:
  // decomposer.cpp: leaves, sums, products, casts.
  Terms expanded(ir::Expr e);
  Terms refuse(ir::Expr e, const std::string& reason = "");
  Terms leaf(ir::Expr e);
  void append_streamed_factors(ir::Expr e, Term& term);
  static int small_power(ir::Expr e);
  void append_row_factors(ir::Expr e, Term& term);
  Terms add(ir::Expr e);
  Terms joined(ir::Expr e, Terms left, Terms right);
  static Terms scale(Terms terms, double factor);
  Terms multiply(ir::Expr e, Terms a, Terms b);
  static bool transparent(ir::Expr e);
  Terms cast(ir::Expr e);

  // decomposer_functions.cpp: quotients, exponentials, logarithms, powers.
  Terms inverse(ir::Expr e, ir::Expr divisor);
  Terms inverse(ir::Expr e, Terms terms);
  ir::Expr exponent_piece(const Term& term, DType dtype);
  Terms exponential(ir::Expr e);
  Terms additive(ir::Expr e);
  Terms summands(ir::Expr e);
  Terms logarithm(ir::Expr e);
  Terms power(ir::Expr e, Terms terms, double exponent);
  Terms factorwise(ir::Expr e, Terms terms, ir::ExprOp op);
  Terms pow(ir::Expr e);

  // decomposer_select.cpp: selects.
  ir::Expr inner_choice(ir::Expr e);
  ir::Expr choice(ir::Expr e) const;
  ir::Expr summand_choice(ir::Expr e);
  Terms select(ir::Expr e, ir::Expr condition, ir::Expr a, ir::Expr b);
  Term guarded(Term term, ir::Expr condition, bool when);
  ir::Expr nan_guard(ir::Expr e, bool zero_instead);

  const StageScope& scope_;
  ir::ExprPool& pool_;
  // Bodies share subexpressions; each is expanded once.
  std::unordered_map<ir::Expr, Terms> terms_, summands_;
  std::unordered_map<ir::Expr, ir::Expr> summand_choices_;
};

}  // namespace redfuser::cascade
