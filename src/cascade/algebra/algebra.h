// Separating a reduction's body into parts of the streamed element and parts of earlier results.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cascade/cascade.h"

namespace redfuser {

// Why a stage has no incremental form; `blame` is the smallest expression that fails.
struct Refusal {
  std::string reason;
  Expr blame = nullptr;
};

// [guards] · coefficient · Πx · Πd / Πd_inverse · exp(Σ exp_x + Σ exp_d)
// x: factors that depend on the streamed axis (or a column) and on no earlier result;
// d: factors free of the streamed axis.
struct Term {
  double coefficient = 1;
  std::vector<Expr> x, d, d_inverse, exp_x, exp_d;
  // Conditions free of the streamed axis; the term is exactly 0 unless all hold, whatever NaN or
  // infinity it would have been.
  std::vector<Expr> guards;

  bool uses_results() const;
};

// What the algebra knows of the cascade around one body.
struct StageScope {
  ExprPool& pool;
  Expr stream;
  const std::vector<Stage>& stages;  // earlier stages, by Result number
  std::vector<Expr> columns;

  // Depends on the streamed element; on an earlier result; on both.
  bool streamed(Expr expr) const;
  bool results(Expr expr) const;
  bool mixed(Expr expr) const { return streamed(expr) && results(expr); }
};

// body = Σ terms (finite rank), by expansion: exp(a + b) = exp(a)·exp(b), (xd)^p = x^p·d^p,
// select(c, a, b) by the condition's dependence, casts between floats of 16 bits or more dropped.
std::variant<std::vector<Term>, Refusal> decompose(const StageScope& scope, Expr body);

// The same with equal streamed parts left apart.
std::variant<std::vector<Term>, Refusal> expand(const StageScope& scope, Expr body);

// Adds up terms with equal streamed parts (collection): their d parts become one sum.
std::vector<Term> collect(const StageScope& scope, std::vector<Term> terms);

// Products as expressions of dtype `dtype`; null lists are 1.
Expr product(ExprPool& pool, const std::vector<Expr>& factors, DType dtype);
Expr sum(ExprPool& pool, const std::vector<Expr>& terms, DType dtype);

// The dtype that states and accumulations of values of `dtype` have: Float64 and UInt64 stay, other
// floats become Float32, other integers Int64.
DType state_dtype(DType dtype);

}  // namespace redfuser
