// Separating a reduction's body into parts of the streamed element and parts of earlier results.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cascade/cascade.h"

namespace redfuser::cascade {

// Why a stage has no incremental form; `blame` is the smallest expression that fails.
struct Refusal {
  std::string reason;
  ir::Expr blame = nullptr;
};

// [guards] · coefficient · Πx · Πd / Πd_inverse · exp(Σ exp_x + Σ exp_d)
// x: factors that depend on the streamed axis (or a column) and on no earlier result;
// d: factors free of the streamed axis.
struct Term {
  double coefficient = 1;
  std::vector<ir::Expr> x, d, d_inverse, exp_x, exp_d;
  // Conditions free of the streamed axis; the term is exactly 0 unless all hold, whatever NaN or
  // infinity it would have been.
  std::vector<ir::Expr> guards;

  bool uses_results() const;
};

// The cascade around one body.
struct StageScope {
  ir::ExprPool& pool;
  ir::Expr stream;
  const std::vector<Stage>& stages;  // earlier stages, by Result number
  std::vector<ir::Expr> columns;

  // Depends on the streamed element; on an earlier result; on both.
  bool streamed(ir::Expr expr) const;
  bool results(ir::Expr expr) const;
  bool mixed(ir::Expr expr) const { return streamed(expr) && results(expr); }
};

// body = Σ terms (finite rank), by expansion: exp(a + b) = exp(a)·exp(b), (xd)^p = x^p·d^p,
// select(c, a, b) by the condition's dependence, casts between floats of 16 bits or more dropped.
std::variant<std::vector<Term>, Refusal> decompose(const StageScope& scope, ir::Expr body);

// The same without collecting terms of equal streamed parts.
std::variant<std::vector<Term>, Refusal> expand(const StageScope& scope, ir::Expr body);

}  // namespace redfuser::cascade
